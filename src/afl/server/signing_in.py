"""Signing in with a browser: the authorization code flow of OpenID Connect, with PKCE."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import httpx
from itsdangerous import BadSignature, URLSafeTimedSerializer

from afl.base.settings import Settings
from afl.server.errors import IssuerAway, NotSignedIn
from afl.server.oidc import Oidc
from afl.server.store import ServerStore

#: How long somebody may take at the identity provider.
BEGUN_LASTS = timedelta(minutes=10)

_SALT = "afl.sign-in"
_TIMEOUT_SECONDS = 10.0
_AGAIN = "Sign in again."


@dataclass(frozen=True, slots=True)
class Begun:
    """A sign-in that has begun: where the browser goes, and what it keeps until it is back."""

    url: str
    kept: str


@dataclass(frozen=True, slots=True)
class SignedIn:
    """What the provider says of somebody, and the page that they came from."""

    claims: Mapping[str, Any]
    back: str


class SignIn:
    """At one identity provider. Threads may share one."""

    def __init__(self, oidc: Oidc, client: str, secret: str | None, store: ServerStore) -> None:
        self._oidc = oidc
        self._client = client
        self._secret = secret
        self._store = store

    def begin(self, redirect: str, back: str) -> Begun:
        """
        Raises:
            IssuerAway: the provider cannot be asked where its pages are.
        """
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        digest = hashlib.sha256(verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self._client,
            "redirect_uri": redirect,
            "scope": "openid",
            "state": state,
            "nonce": nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        place = self._oidc.place("authorization_endpoint")
        url = f"{place}{'&' if '?' in place else '?'}{urlencode(asked)}"
        return Begun(url, str(self._serializer().dumps([state, nonce, verifier, _local(back)])))

    def end(self, kept: str | None, state: str, code: str, redirect: str) -> SignedIn:
        """Who it is, once the browser is back from the provider.

        Raises:
            NotSignedIn: nothing of that was begun here, or the provider says no.
            IssuerAway: the provider cannot be asked.
        """
        known_state, nonce, verifier, back = self._begun(kept)
        if not hmac.compare_digest(known_state.encode(), state.encode()):
            raise NotSignedIn(f"This sign-in was not begun in this browser. {_AGAIN}")
        token = self._exchange(code, verifier, redirect)
        claims = self._oidc.claims(token, self._client)
        if not hmac.compare_digest(str(claims.get("nonce")).encode(), nonce.encode()):
            raise NotSignedIn(f"The identity provider answered another sign-in. {_AGAIN}")
        return SignedIn(claims, back)

    def _begun(self, kept: str | None) -> tuple[str, str, str, str]:
        age = int(BEGUN_LASTS.total_seconds())
        try:
            state, nonce, verifier, back = self._serializer().loads(kept or "", max_age=age)
        except BadSignature as error:
            raise NotSignedIn(
                f"This sign-in was not begun here, or too long ago. {_AGAIN}"
            ) from error
        return state, nonce, verifier, back

    def _exchange(self, code: str, verifier: str, redirect: str) -> str:
        """The ID token for a code."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect,
            "client_id": self._client,
            "code_verifier": verifier,
        }
        if self._secret is not None:
            form["client_secret"] = self._secret
        place = self._oidc.place("token_endpoint")
        try:
            answer = httpx.post(place, data=form, timeout=_TIMEOUT_SECONDS)
            if answer.status_code in (400, 401):
                raise NotSignedIn(
                    f"The identity provider does not take its own answer any more. {_AGAIN}"
                )
            token = answer.raise_for_status().json()["id_token"]
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError) as error:
            raise IssuerAway(
                f"The identity provider cannot be asked who you are: {error}"
            ) from error
        return str(token)

    def _serializer(self) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self._store.secret(), salt=_SALT)


def sign_in_of(settings: Settings, store: ServerStore) -> SignIn | None:
    """The way in for browsers, where the settings name a client."""
    issuer, audience, client = (
        settings.oidc_issuer,
        settings.oidc_audience,
        settings.oidc_client_id,
    )
    if issuer is None or audience is None or client is None:
        return None
    return SignIn(Oidc(issuer, audience), client, settings.oidc_client_secret, store)


def _local(back: str) -> str:
    """A page of this server; the first one if it is none."""
    is_local = back.startswith("/") and not back.startswith("//") and "\\" not in back
    return back if is_local and back.isprintable() else "/"
