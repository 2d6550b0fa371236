"""An identity provider on this machine, with a key of its own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

AUDIENCE = "agentflow"
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@dataclass(slots=True)
class Issuer:
    """What it publishes, and how often it was asked."""

    url: str = ""
    keys: dict[str, Key] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    broken: bool = False

    def token(self, kid: str, key: Key | None = None, /, **claims: object) -> str:
        """A token signed with a key; None leaves a claim out."""
        signer = key or self.keys[kid]
        algorithm = "RS256" if isinstance(signer, rsa.RSAPrivateKey) else "ES256"
        usual = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "ada",
            "exp": datetime.now(UTC) + timedelta(minutes=5),
            "afl_role": "operator",
        }
        told = {name: value for name, value in {**usual, **claims}.items() if value is not None}
        return jwt.encode(told, signer, algorithm=algorithm, headers={"kid": kid})

    def published(self) -> dict[str, Any]:
        """The public keys."""
        found = []
        for kid, key in self.keys.items():
            if isinstance(key, rsa.RSAPrivateKey):
                shown = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
            else:
                shown = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
            found.append({**shown, "kid": kid, "use": "sig"})
        return {"keys": found}


def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def ec_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@cache
def _keys() -> dict[str, Key]:
    """Made once: large primes take their time."""
    return {"rsa": rsa_key(), "ec": ec_key()}


@contextmanager
def issuing() -> Iterator[Issuer]:
    """An issuer with one key of each kind."""
    issuer = Issuer(keys=dict(_keys()))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.asked.append(self.path)
            answers: dict[str, object] = {
                "/.well-known/openid-configuration": {
                    "issuer": issuer.url,
                    "jwks_uri": f"{issuer.url}/keys",
                },
                "/keys": issuer.published(),
            }
            body = json.dumps(answers.get(self.path)).encode()
            self.send_response(500 if issuer.broken else 200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
