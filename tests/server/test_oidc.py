"""Signing in through an identity provider: a real one, on this machine."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import jwt
import pytest
from starlette.testclient import TestClient

from afl.base.settings import Settings
from afl.server import oidc
from afl.server.application import API, create_app
from afl.server.backend import Backend
from tests.server.calling import last_entry, token_for
from tests.server.issuer import AUDIENCE, Issuer, ec_key, issuing, rsa_key


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with issuing() as made:
        yield made


@pytest.fixture
def client(memory_backend: Backend, issuer: Issuer) -> TestClient:
    settings = Settings(oidc_issuer=issuer.url, oidc_audience=AUDIENCE)
    return TestClient(create_app(replace(memory_backend, settings=settings)))


def me(client: TestClient, token: str) -> tuple[int, dict[str, object]]:
    answer = client.get(f"{API}/me", headers={"Authorization": f"Bearer {token}"})
    return answer.status_code, answer.json()


@pytest.mark.parametrize("kid", ["rsa", "ec"])
def test_a_token_of_the_issuer_is_accepted(client: TestClient, issuer: Issuer, kid: str) -> None:
    status, told = me(client, issuer.token(kid, afl_tenant="a"))
    assert status == 200
    assert (told["subject"], told["role"], told["tenant"]) == ("oidc:ada", "operator", "a")
    assert me(client, issuer.token(kid))[1]["tenant"] == "default"
    # the keys were fetched once
    assert issuer.asked == ["/.well-known/openid-configuration", "/keys"]


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": datetime.now(UTC) - timedelta(days=1)},
        {"exp": None},
        {"aud": "another"},
        {"aud": None},
        {"iss": "https://evil.example"},
        {"sub": None},
        {"nbf": datetime.now(UTC) + timedelta(days=1)},
        {"afl_role": None},
        {"afl_role": "root"},
        {"afl_role": ["admin"]},
        {"afl_tenant": 7},
        {"afl_tenant": ""},
    ],
    ids=lambda each: ",".join(f"{name}={type(value).__name__}" for name, value in each.items()),
)
def test_a_token_that_says_something_else_is_not(
    client: TestClient, issuer: Issuer, memory_backend: Backend, claims: dict[str, object]
) -> None:
    status, problem = me(client, issuer.token("rsa", **claims))
    assert (status, problem["code"]) == (401, "server.not_signed_in")
    assert last_entry(memory_backend).status == 401


def test_a_token_that_another_has_signed_is_not(client: TestClient, issuer: Issuer) -> None:
    for kid, key in (("rsa", rsa_key()), ("ec", ec_key()), ("unknown", rsa_key())):
        status, _ = me(client, issuer.token(kid, key))
        assert status == 401


def _part(value: object) -> bytes:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=")


def test_tokens_that_nobody_has_signed_are_not(client: TestClient, issuer: Issuer) -> None:
    claims = jwt.decode(issuer.token("rsa"), options={"verify_signature": False})
    none = _part({"alg": "none", "kid": "rsa"}) + b"." + _part(claims) + b"."
    assert me(client, none.decode())[0] == 401
    # signed with what everybody can read: the public key, as if it were a password
    public = json.dumps(issuer.published()["keys"][0]).encode()
    signed = _part({"alg": "HS256", "kid": "rsa"}) + b"." + _part(claims)
    mark = hmac.new(public, signed, hashlib.sha256).digest()
    assert me(client, (signed + b"." + urlsafe_b64encode(mark).rstrip(b"=")).decode())[0] == 401
    for junk in ("x", "a.b.c", "..", "eyJ"):
        assert me(client, junk)[0] == 401


def test_a_new_key_is_found_and_made_up_ones_cost_nothing(
    client: TestClient, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(oidc, "monotonic", lambda: now[0])
    assert me(client, issuer.token("rsa"))[0] == 200
    issuer.keys["new"] = rsa_key()
    for _ in range(3):  # somebody makes up keys: the issuer is not asked each time
        assert me(client, issuer.token("new"))[0] == 401
    assert len(issuer.asked) == 2
    now[0] += 11
    assert me(client, issuer.token("new"))[0] == 200
    assert len(issuer.asked) == 4
    del issuer.keys["rsa"]  # a key that the issuer has taken back is good for ten minutes
    lost = issuer.token("rsa", rsa_key())
    now[0] += 601
    assert me(client, lost)[0] == 401
    assert len(issuer.asked) == 6


def test_while_the_issuer_is_away_known_keys_serve(
    client: TestClient, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(oidc, "monotonic", lambda: now[0])
    issuer.broken = True
    status, problem = me(client, issuer.token("rsa"))
    assert (status, problem["code"]) == (503, "server.issuer_away")
    assert me(client, issuer.token("rsa"))[0] == 503
    assert len(issuer.asked) == 1  # it is left in peace for a while
    issuer.broken = False
    now[0] += 11
    assert me(client, issuer.token("rsa"))[0] == 200
    issuer.broken = True
    now[0] += 601
    assert me(client, issuer.token("rsa"))[0] == 200


def test_tokens_of_our_own_are_accepted_beside(
    client: TestClient, issuer: Issuer, memory_backend: Backend
) -> None:
    headers = token_for(memory_backend, "viewer")
    assert client.get(f"{API}/me", headers=headers).status_code == 200
    assert issuer.asked == []
