"""What somebody does is written down before it is done."""

from __future__ import annotations

from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from afl.kernel.errors import StoreUnavailable
from afl.server.application import API, create_app
from afl.server.auditing import note
from afl.server.backend import Backend
from afl.server.memory_store import MemoryServerStore
from afl.server.store import AuditEntry
from tests.server.calling import last_entry, token_for


class _Away(MemoryServerStore):
    """A store whose trail cannot be written."""

    def begin_audit(self, entry: AuditEntry) -> int:
        raise StoreUnavailable


class _Forgetful(MemoryServerStore):
    """A store that goes away before the end."""

    def end_audit(self, id: int, status: int, detail: object) -> None:
        raise StoreUnavailable


def test_a_deed_is_in_the_trail_with_its_end(backend: Backend) -> None:
    client = TestClient(create_app(backend), headers=token_for(backend, "admin"))
    made = client.post(f"{API}/tokens", json={"name": "bob", "role": "viewer"}).json()
    entry = last_entry(backend)
    assert entry.subject == "admin of *"
    assert (entry.role, entry.tenant, entry.action) == ("admin", "*", "POST /tokens")
    assert entry.status == 201
    assert entry.detail == {
        "token": made["id"],
        "name": "bob",
        "role": "viewer",
        "tenant": "default",
    }
    assert made["secret"] not in repr(backend.store.audit())
    client.delete(f"{API}/tokens/{made['id']}")
    entry = last_entry(backend)
    assert (entry.action, entry.target, entry.status) == (
        "DELETE /tokens/{token}",
        f"token={made['id']}",
        204,
    )


def test_a_deed_that_fails_is_there_with_its_status(backend: Backend) -> None:
    client = TestClient(create_app(backend), headers=token_for(backend, "admin"))
    assert client.post(f"{API}/tokens", json={}).status_code == 422
    assert last_entry(backend).status == 422
    assert client.delete(f"{API}/tokens/none").status_code == 404
    assert last_entry(backend).status == 404


def test_what_is_sent_is_not_written(backend: Backend) -> None:
    client = TestClient(create_app(backend), headers=token_for(backend, "admin"))
    body = {"name": "paid", "key": "k-1", "payload": {"card": "4111"}}
    assert client.post(f"{API}/events", json=body).status_code == 200
    assert last_entry(backend).detail == {"event": "paid"}
    assert client.post(f"{API}/links/s3cr3t-link", json={}).status_code >= 400
    entry = last_entry(backend)
    assert (entry.subject, entry.action) == ("anonymous", "POST /links/{token}")
    assert entry.target.startswith("token=#")
    assert "s3cr3t" not in repr(backend.store.audit())


def test_looking_is_not_a_deed(backend: Backend) -> None:
    client = TestClient(create_app(backend), headers=token_for(backend, "admin"))
    for path in ("me", "health", "views", "tokens", "audit"):
        assert client.get(f"{API}/{path}").status_code == 200
    for path in ("check", "check/graph", "try", "schedules/preview", "bulk/preview"):
        client.post(f"{API}/{path}", json={})
    client.post(f"{API}/runs/x/actions/cancel?dry_run=true", json={})
    assert backend.store.audit() == []


@pytest.mark.parametrize("query", ["?dry_run=true", "?dry_run=1", "?dry_run=yes"])
def test_only_where_it_means_something_does_a_dry_run_leave_no_trace(
    memory_backend: Backend, query: str
) -> None:
    client = TestClient(create_app(memory_backend), headers=token_for(memory_backend, "admin"))
    client.post(f"{API}/tokens{query}", json={"name": "bob", "role": "viewer"})
    assert last_entry(memory_backend).action == "POST /tokens"


@pytest.mark.parametrize("query", ["", "?dry_run=false", "?dry_run=true&dry_run=false"])
def test_an_action_that_is_no_dry_run_leaves_one(memory_backend: Backend, query: str) -> None:
    client = TestClient(create_app(memory_backend), headers=token_for(memory_backend, "admin"))
    client.post(f"{API}/runs/x/actions/cancel{query}", json={})
    entry = last_entry(memory_backend)
    assert (entry.action, entry.target) == (
        "POST /runs/{run}/actions/{verb}",
        "run=x verb=cancel",
    )


def test_what_cannot_be_written_down_is_not_done(memory_backend: Backend) -> None:
    backend = replace(memory_backend, store=_Away())
    client = TestClient(create_app(backend), headers=token_for(backend, "admin"))
    answer = client.post(f"{API}/tokens", json={"name": "bob", "role": "viewer"})
    assert (answer.status_code, answer.json()["code"]) == (503, "server.no_trace")
    assert "retry-after" in answer.headers
    assert [token.name for token in backend.store.tokens()] == ["admin of *"]
    assert client.get(f"{API}/tokens").status_code == 200


def test_a_deed_whose_end_is_lost_shows_that_it_was_begun(memory_backend: Backend) -> None:
    backend = replace(memory_backend, store=_Forgetful())
    client = TestClient(create_app(backend), headers=token_for(backend, "admin"))
    assert client.post(f"{API}/views", json={"name": "x", "query": ""}).status_code == 201
    assert last_entry(backend).status == 0


def test_what_cannot_be_shown_is_written_all_the_same(backend: Backend) -> None:
    client = TestClient(create_app(backend), headers=token_for(backend, "admin"))
    assert client.delete(f"{API}/tokens/a%00b%0Ac").status_code in (404, 422)
    entry = last_entry(backend)
    assert entry.target == "token=a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"
    assert entry.status in (404, 422)
    form = b'{"name": "a\\u0000b\\ud800", "payload": "\\u0000\\ud800"}'
    headers = {"Content-Type": "application/json"}
    assert client.post(f"{API}/events", content=form, headers=headers).status_code == 422
    form = b'{"name": "a\\u0000b"}'
    assert client.post(f"{API}/events", content=form, headers=headers).status_code in (200, 422)
    entry = last_entry(backend)
    assert entry.detail == {"event": "a\N{REPLACEMENT CHARACTER}b"}
    assert client.get(f"{API}/me", headers={"Authorization": "Bearer a\x7fb"}).status_code == 401
    assert client.get(f"{API}/runs/%00").status_code in (404, 422)


def test_a_note_outside_of_a_request_is_nothing() -> None:
    note(run="x")
