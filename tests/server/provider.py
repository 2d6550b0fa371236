"""An identity provider on this machine that browsers sign in at: codes with PKCE, and ID tokens."""

from __future__ import annotations

import base64
import hashlib
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import urlencode

import uvicorn
from fastapi import FastAPI, Form
from fastapi.responses import JSONResponse, RedirectResponse

from tests.server.issuer import Issuer, issuing

CLIENT = "dashboard"
SECRET = "hush"


@dataclass(slots=True)
class _Code:
    client: str
    redirect: str
    challenge: str
    nonce: str


@dataclass(slots=True)
class Provider:
    """What it says of whoever signs in; a test may have it say something else."""

    issuer: Issuer
    url: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    #: in the place of the one that it was asked with
    nonce: str | None = None
    codes: dict[str, _Code] = field(default_factory=dict)
    #: how often a code was exchanged
    exchanged: int = 0

    def expire_codes(self) -> None:
        self.codes.clear()


def _application(provider: Provider) -> FastAPI:
    app = FastAPI()

    @app.get("/.well-known/openid-configuration")
    def discovery() -> dict[str, str]:
        return {
            "issuer": provider.url,
            "jwks_uri": f"{provider.url}/keys",
            "authorization_endpoint": f"{provider.url}/authorize",
            "token_endpoint": f"{provider.url}/token",
        }

    @app.get("/keys")
    def keys() -> dict[str, Any]:
        return provider.issuer.published()

    @app.get("/authorize")
    def authorize(
        response_type: str,
        client_id: str,
        redirect_uri: str,
        scope: str,
        state: str,
        nonce: str,
        code_challenge: str,
        code_challenge_method: str,
    ) -> RedirectResponse:
        assert (response_type, code_challenge_method) == ("code", "S256")
        assert "openid" in scope.split()
        code = secrets.token_urlsafe(16)
        provider.codes[code] = _Code(client_id, redirect_uri, code_challenge, nonce)
        return RedirectResponse(f"{redirect_uri}?{urlencode({'code': code, 'state': state})}", 302)

    @app.post("/token")
    def token(
        grant_type: Annotated[str, Form()],
        code: Annotated[str, Form()],
        redirect_uri: Annotated[str, Form()],
        client_id: Annotated[str, Form()],
        code_verifier: Annotated[str, Form()],
        client_secret: Annotated[str, Form()] = "",
    ) -> JSONResponse:
        assert grant_type == "authorization_code"
        known = provider.codes.pop(code, None)
        digest = hashlib.sha256(code_verifier.encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        given = (client_id, redirect_uri, challenge)
        if known is None or given != (known.client, known.redirect, known.challenge):
            return JSONResponse({"error": "invalid_grant"}, 400)
        if client_secret != SECRET:
            return JSONResponse({"error": "invalid_client"}, 401)
        provider.exchanged += 1
        claims = {"aud": CLIENT, "nonce": provider.nonce or known.nonce, **provider.claims}
        signed = provider.issuer.token("rsa", **{"iss": provider.url, **claims})
        return JSONResponse({"id_token": signed, "token_type": "Bearer", "access_token": "x"})

    return app


@contextmanager
def providing() -> Iterator[Provider]:
    """A provider that answers."""
    with issuing() as issuer, socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        provider = Provider(issuer, f"http://127.0.0.1:{listener.getsockname()[1]}")
        config = uvicorn.Config(_application(provider), log_config=None, lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            until = time.monotonic() + 60
            while not server.started and time.monotonic() < until:
                time.sleep(0.02)
            assert server.started
            yield provider
        finally:
            server.should_exit = True
            thread.join()
