"""Signed web hooks: who signs starts one run for each delivery, and nobody else starts any."""

from __future__ import annotations

import base64
import hmac
import json
import time

import pytest
from starlette.testclient import TestClient

from afl.server.backend import Backend

FLOW = """\
namespace demo {
  workflow Fields(name: String, count: Int = 1) => (name: String) andThen {
    yield Fields(name = $.name)
  }
  workflow Whole(payload: Json) => (payload: Json) andThen {
    yield Whole(payload = $.payload)
  }
}
"""


def _hook(admin: TestClient, workflow: str, name: str = "orders") -> dict[str, str]:
    made = admin.post("/api/v1/hooks", json={"name": name, "workflow": workflow})
    assert made.status_code == 201
    return dict(made.json())


def _signed(secret: str, body: bytes, id: str = "one", at: int | None = None) -> dict[str, str]:
    stamp = str(int(time.time()) if at is None else at)
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mac = hmac.digest(key, b".".join((id.encode(), stamp.encode(), body)), "sha256")
    signature = "v1," + base64.b64encode(mac).decode()
    return {
        "webhook-id": id,
        "webhook-timestamp": stamp,
        "webhook-signature": f"v1,bm90IHRoaXM= {signature}",
        "content-type": "application/json",
    }


def test_a_delivery_starts_one_run(
    backend: Backend, admin: TestClient, anonymous: TestClient
) -> None:
    backend.client.deploy(FLOW)
    hook = _hook(admin, "demo.Fields")
    body = json.dumps({"name": "ada", "count": 3}).encode()
    headers = _signed(hook["secret"], body)
    first = anonymous.post(hook["path"], content=body, headers=headers)
    assert first.status_code == 202
    assert anonymous.post(hook["path"], content=body, headers=headers).json() == first.json()
    other = anonymous.post(hook["path"], content=body, headers=_signed(hook["secret"], body, "two"))
    assert other.json() != first.json()
    run = backend.client.operations.get(first.json()["run"])
    assert run.inputs == {"name": "ada", "count": 3}
    assert run.labels["afl.hook"] == "orders"
    assert len(backend.client.runs()) == 2


def test_github_signs_the_body(backend: Backend, admin: TestClient, anonymous: TestClient) -> None:
    backend.client.deploy(FLOW)
    hook = _hook(admin, "demo.Whole")
    body = b'["any", "JSON"]'
    mac = hmac.digest(hook["secret"].encode(), body, "sha256").hex()
    headers = {"x-hub-signature-256": f"sha256={mac}", "x-github-delivery": "abc"}
    answer = anonymous.post(hook["path"], content=body, headers=headers)
    assert answer.status_code == 202
    run = backend.client.operations.get(answer.json()["run"])
    assert run.inputs == {"payload": ["any", "JSON"]}


def test_what_is_not_signed_starts_nothing(
    backend: Backend, admin: TestClient, anonymous: TestClient
) -> None:
    backend.client.deploy(FLOW)
    hook = _hook(admin, "demo.Fields")
    secret, body = hook["secret"], b'{"name": "ada"}'
    good = _signed(secret, body)
    bad: list[tuple[bytes, dict[str, str]]] = [
        (body, {}),
        (b'{"name": "eve"}', good),
        (body, {**good, "webhook-id": "another"}),
        (body, {**good, "webhook-timestamp": str(int(good["webhook-timestamp"]) + 1)}),
        (body, _signed(secret, body, at=int(time.time()) - 3600)),
        (body, _signed(secret, body, at=int(time.time()) + 3600)),
        (body, _signed("whsec_" + base64.b64encode(b"x" * 32).decode(), body)),
        (body, {"x-hub-signature-256": "sha256=00", "x-github-delivery": "abc"}),
        (body, {**good, "webhook-timestamp": "soon"}),
    ]
    for content, headers in bad:
        answer = anonymous.post(hook["path"], content=content, headers=headers)
        assert answer.status_code == 401, headers
        assert answer.json()["code"] == "server.bad_signature"
    assert backend.client.runs() == []


@pytest.mark.parametrize("body", [b"no json", b"[1]", b'{"nobody": 1}'])
def test_what_the_workflow_does_not_take_is_refused(
    backend: Backend, admin: TestClient, anonymous: TestClient, body: bytes
) -> None:
    backend.client.deploy(FLOW)
    hook = _hook(admin, "demo.Fields")
    headers = _signed(hook["secret"], body)
    assert anonymous.post(hook["path"], content=body, headers=headers).status_code == 422
    assert backend.client.runs() == []


def test_hooks_are_made_once_and_deleted(admin: TestClient, anonymous: TestClient) -> None:
    _hook(admin, "demo.Fields")
    taken = admin.post("/api/v1/hooks", json={"name": "orders", "workflow": "demo.Fields"})
    assert taken.status_code == 409
    (listed,) = admin.get("/api/v1/hooks").json()
    assert "secret" not in listed
    assert admin.delete("/api/v1/hooks/orders").status_code == 204
    assert admin.delete("/api/v1/hooks/orders").status_code == 404
    assert anonymous.post(listed["path"], content=b"{}").status_code == 404
