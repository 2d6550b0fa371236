"""How much anybody may send, and how often."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from afl.server.application import API, create_app
from afl.server.backend import Backend
from afl.server.errors import TooMany
from afl.server.limits import Limits, RateLimit
from tests.server.calling import token_for


class TestRateLimit:
    def test_a_burst_is_taken_and_then_as_much_as_flows_in(self) -> None:
        now = [0.0]
        limit = RateLimit(Limits(requests_per_second=2, burst=3), lambda: now[0])
        for _ in range(3):
            limit.take("ada")
        with pytest.raises(TooMany) as refused:
            limit.take("ada")
        assert refused.value.retry_after == 0.5
        limit.take("bob")  # others are not concerned
        now[0] = 0.5
        limit.take("ada")
        with pytest.raises(TooMany):
            limit.take("ada")
        now[0] = 1000.0  # a bucket is never more than full
        for _ in range(3):
            limit.take("ada")
        with pytest.raises(TooMany):
            limit.take("ada")

    def test_it_does_not_remember_everybody(self) -> None:
        limit = RateLimit(Limits(burst=1), lambda: 0.0)
        for number in range(10_001):
            limit.take(f"address:{number}")
        limit.take("address:0")  # who asked longest ago is forgotten
        with pytest.raises(TooMany):
            limit.take("address:10000")


def test_who_asks_too_often_waits(memory_backend: Backend) -> None:
    app = create_app(memory_backend, Limits(requests_per_second=0.001, burst=3))
    client = TestClient(app, headers=token_for(memory_backend, "viewer"))
    assert [client.get(f"{API}/me").status_code for _ in range(4)] == [200, 200, 200, 429]
    refused = client.get(f"{API}/me")
    assert refused.json()["code"] == "server.too_many"
    assert int(refused.headers["retry-after"]) > 900
    other = token_for(memory_backend, "viewer", name="other")
    assert client.get(f"{API}/me", headers=other).status_code == 200
    assert client.get("/livez").status_code == 200


def test_who_is_refused_cannot_fill_the_trail(memory_backend: Backend) -> None:
    app = create_app(memory_backend, Limits(requests_per_second=0.001, burst=3))
    client = TestClient(app)
    statuses = [client.get(f"{API}/me").status_code for _ in range(6)]
    assert statuses == [401, 401, 401, 429, 429, 429]
    assert len(memory_backend.store.audit()) == 3


def test_a_body_that_is_too_large_is_refused(memory_backend: Backend) -> None:
    app = create_app(memory_backend, Limits(body_bytes=100, log_bytes=200))
    client = TestClient(app, headers=token_for(memory_backend, "admin"))
    answer = client.post(f"{API}/events", json={"name": "x" * 100})
    assert answer.status_code == 413
    assert answer.json()["code"] == "server.too_large"
    assert "100 bytes" in answer.json()["detail"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert client.post(f"{API}/events", json={"name": "x"}).status_code == 200
    # log lines may be more
    assert client.post(f"{API}/logs/none", content=b"x" * 150).status_code == 404
    assert client.post(f"{API}/logs/none", content=b"x" * 250).status_code == 413


def test_a_body_that_does_not_say_how_large_it_is_is_counted(memory_backend: Backend) -> None:
    app = create_app(memory_backend, Limits(body_bytes=100))
    client = TestClient(app, headers=token_for(memory_backend, "admin"))
    sent = []

    def pieces() -> Iterator[bytes]:
        yield b'{"name": "'
        for number in range(1000):
            sent.append(number)
            yield b"x" * 50
        yield b'"}'

    answer = client.post(
        f"{API}/events", content=pieces(), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 413
    assert answer.json()["code"] == "server.too_large"
