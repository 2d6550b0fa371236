"""What people are asked, over HTTP: forms, answers, links for those without an account."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from afl.app.serving import AppWorker
from afl.runtime.handler_table import HandlerTable
from afl.runtime.worker import WorkerConfig
from afl.server.application import create_app
from afl.server.backend import Backend
from afl.server.links import link_token
from tests.server.calling import last_entry, token_for

FLOW = """\
namespace shop {
  event facet Approve(amount: Int) => (ok: Boolean, note: String?) with Human(group = "finance")

  workflow Buy(amount: Int) => (ok: Boolean) andThen {
    said = Approve(amount = $.amount)
    yield Buy(ok = said.ok)
  }
}
"""


@pytest.fixture
def asked(backend: Backend) -> str:
    """The run that waits for a person."""
    backend.client.deploy(FLOW)
    run = backend.client.submit("shop.Buy", {"amount": 7})
    with AppWorker(backend.services, HandlerTable(), WorkerConfig(slots=1)):
        _until_asked(backend)
    return run.id


def _until_asked(backend: Backend) -> None:
    for _ in range(1000):
        if backend.client.inbox().list():
            return
        backend.services.doorbell.wait(["default"], 0.02)
    raise AssertionError("nobody is asked for anything")


def test_a_request_is_listed_and_answered_once(
    backend: Backend, admin: TestClient, asked: str
) -> None:
    (item,) = admin.get("/api/v1/inbox").json()["items"]
    assert item["run"] == asked
    assert item["group"] == "finance"
    assert item["params"] == {"amount": 7}
    assert item["form"]["properties"]["ok"]["type"] == "boolean"
    place = f"/api/v1/inbox/{item['task']}"
    wrong = admin.post(place, json={"values": {"ok": "perhaps"}})
    assert wrong.status_code == 422
    assert "ok" in wrong.json()["detail"]
    done = admin.post(place, json={"values": {"ok": True, "note": None}})
    assert done.status_code == 200
    assert done.json()["run"] == asked
    again = admin.post(place, json={"values": {"ok": False}})
    assert again.status_code == 409
    assert "already answered" in again.json()["detail"]
    assert last_entry(backend).target.endswith(item["task"])


def test_a_link_answers_without_an_account(
    backend: Backend, anonymous: TestClient, admin: TestClient, asked: str
) -> None:
    (item,) = admin.get("/api/v1/inbox").json()["items"]
    token = item["link"].removeprefix("/answer/")
    place = f"/api/v1/links/{token}"
    assert anonymous.get(place).json()["title"] == item["title"]
    assert anonymous.get(place).json()["link"] is None
    refused = anonymous.post(place, json={"verb": "reject", "reason": "too much"})
    assert refused.status_code == 200
    assert anonymous.post(place, json={"values": {"ok": True}}).status_code == 409
    for bad in (token[:-2] + "xx", "nonsense", link_token(backend.store, "no-such-task")):
        assert anonymous.get(f"/api/v1/links/{bad}").status_code == 404


def test_who_may_not_answer_gets_no_link(backend: Backend, asked: str) -> None:
    viewer = TestClient(create_app(backend), headers=token_for(backend, "viewer"))
    (item,) = viewer.get("/api/v1/inbox").json()["items"]
    assert item["link"] is None
    place = f"/api/v1/inbox/{item['task']}"
    assert viewer.post(place, json={"values": {"ok": True}}).status_code == 403


def test_what_another_tenant_is_asked_is_not_there(backend: Backend, asked: str) -> None:
    other = TestClient(create_app(backend), headers=token_for(backend, "admin", "elsewhere"))
    assert other.get("/api/v1/inbox").json()["items"] == []
    (task,) = (item.task for item in backend.client.inbox().list())
    assert other.get(f"/api/v1/inbox/{task}").status_code == 404
    refused = other.post(f"/api/v1/inbox/{task}", json={"values": {"ok": True}})
    assert refused.status_code == 404
