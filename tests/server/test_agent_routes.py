"""Agents, transcripts, cost and mail over HTTP, with a model at work."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest
from starlette.testclient import TestClient

from afl.app.costs import Costs
from afl.base.settings import Settings
from afl.server.application import create_app
from afl.server.backend import Backend
from afl.server.serving import open_backend
from afl.turns.model import Allowance
from tests.cli.at_work import FLOW, at_work
from tests.cli.deployed import deployed_database, finished
from tests.kernel.postgres.databases import server_is_there
from tests.server.calling import token_for

pytestmark = pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")


@pytest.fixture(scope="module")
def working(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Backend, str]]:
    """A backend beside a worker with a model, and a run that has asked it."""
    with (
        deployed_database(FLOW) as url,
        at_work(url, tmp_path_factory.mktemp("model")),
        open_backend(url, Settings()) as backend,
    ):
        yield backend, finished(url, "demo.Do", "-i", "word=cat")


@pytest.fixture
def client(working: tuple[Backend, str]) -> TestClient:
    backend, _ = working
    name = str(len(backend.store.tokens()))
    return TestClient(create_app(backend), headers=token_for(backend, "admin", name=name))


def test_a_turn_is_told_with_tools_tokens_and_price(
    working: tuple[Backend, str], client: TestClient
) -> None:
    _, run = working
    (turn,) = client.get(f"/api/v1/runs/{run}/turns").json()
    assert (turn["outcome"], turn["step"], turn["requests"]) == ("success", "0/said", 2)
    assert turn["closed_at"] > turn["created_at"]
    told = client.get(f"/api/v1/turns/{turn['id']}").json()
    assert told["system"] == "You explain."
    kinds = [line["kind"] for line in told["lines"]]
    assert kinds == [
        "user",
        "assistant",
        "tool_call",
        "note",
        "tool_result",
        "assistant",
        "deliverable",
    ]
    call = told["lines"][2]
    assert (call["tool"], call["arguments"], call["request"]) == ("Fetch", '{"name":"cat"}', 0)
    assert told["calls"][0]["usage"]["cache_read"] == 80
    assert told["cost_usd"] == pytest.approx(sum(each["cost_usd"] for each in told["calls"]))
    assert told["deliverable"]["fields"] == {"text": "answer to: Explain cat."}
    assert client.get("/api/v1/turns/00000000-0000-7000-8000-000000000000").status_code == 404


def test_cost_is_added_up(working: tuple[Backend, str], client: TestClient) -> None:
    _, run = working
    (by_run,) = client.get("/api/v1/cost", params={"by": "run", "run": run}).json()
    assert (by_run["key"], by_run["requests"]) == (run, 2)
    assert client.get("/api/v1/cost", params={"since": "1d"}).json()
    assert client.get("/api/v1/cost", params={"since": "2999-01-01T00:00:00Z"}).json() == []
    assert client.get("/api/v1/cost", params={"since": "soon"}).status_code == 422


def test_a_tenant_sees_its_own_budgets_and_who_sees_all_sees_those_of_all(
    working: tuple[Backend, str], client: TestClient
) -> None:
    backend, _ = working
    for tenant in ("default", "other"):
        Costs(backend.services, tenant).set_budget("tenant", tenant, Allowance(Decimal(5)))
    every = client.get("/api/v1/budgets").json()
    assert [(each["tenant"], each["limit_usd"]) for each in every] == [("default", 5), ("other", 5)]
    assert len(client.get("/api/v1/budgets", params={"limit": 1}).json()) == 1
    other = TestClient(create_app(backend), headers=token_for(backend, "viewer", "other"))
    assert [each["tenant"] for each in other.get("/api/v1/budgets").json()] == ["other"]


def test_agents_are_listed_with_what_they_are_at(
    working: tuple[Backend, str], client: TestClient
) -> None:
    backend, _ = working
    backend.client.agents.set("anna", models=["scripted:x"])
    listed = client.get("/api/v1/agents").json()["items"]
    assert {"agent": "anna", "status": "idle", "model": "scripted:x"}.items() <= next(
        each for each in listed if each["agent"] == "anna"
    ).items()
    assert client.get("/api/v1/agents/anna/turns").json() == []
    assert client.get("/api/v1/agents/nobody/turns").status_code == 404
    assert client.post("/api/v1/agents/anna/stop").status_code == 404


def test_messages_are_sent_seen_and_driven_again(
    working: tuple[Backend, str], client: TestClient
) -> None:
    form = {"to": "ben:1", "payload": {"word": "cat"}, "priority": "high"}
    sent = client.post("/api/v1/mail", json=form)
    assert sent.status_code == 201
    (seen,) = client.get("/api/v1/mail/ben:1").json()
    assert (seen["id"], seen["payload"]) == (sent.json()["id"], {"word": "cat"})
    assert client.get("/api/v1/mail/ben:1/dead").json() == []
    unknown = client.post(f"/api/v1/mail/ben:1/dead/{seen['id']}/redrive")
    assert unknown.status_code == 404
    assert client.post("/api/v1/mail", json={"to": "a b{"}).status_code == 422
    assert client.get("/api/v1/mail").status_code == 200


def test_without_a_redis_there_are_no_shared_breakers(client: TestClient) -> None:
    assert client.get("/api/v1/breakers").json() == []
    assert client.post("/api/v1/breakers/model:x/reset").status_code == 404
