"""The server itself: health, events, views, tokens, audit."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import psycopg
import pytest
from starlette.testclient import TestClient

from afl.server.application import API, create_app
from afl.server.backend import Backend
from afl.server.dev_state import DevState
from tests.kernel.postgres.databases import empty_database, server_is_there
from tests.server.calling import token_for

needs_postgres = pytest.mark.skipif(not server_is_there(), reason="no PostgreSQL to test with")
WAITING = """\
namespace demo {
  workflow Wait(key: String) => (answer: Json) andThen {
    came = afl.event.Wait(name = "answer", key = $.key)
    yield Wait(answer = came.payload)
  }
}
"""


class TestTokens:
    def test_a_token_that_was_made_works(self, admin: TestClient) -> None:
        form = {"name": "ci", "role": "developer", "tenant": "a", "expires_in": "90d"}
        answer = admin.post(f"{API}/tokens", json=form)
        assert answer.status_code == 201
        made = answer.json()
        assert made["secret"].startswith("afl_")
        assert len(made["secret"]) == 47
        span = datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(
            made["created_at"]
        )
        assert span.days == 90
        headers = {"Authorization": f"Bearer {made['secret']}"}
        assert admin.get(f"{API}/me", headers=headers).json()["subject"] == "ci"
        listed = admin.get(f"{API}/tokens").json()
        assert [token["name"] for token in listed] == ["admin of *", "ci"]
        assert all("secret" not in token and "digest" not in token for token in listed)
        assert listed[1]["last_used_at"] is not None
        assert admin.delete(f"{API}/tokens/{made['id']}").status_code == 204
        assert admin.get(f"{API}/me", headers=headers).status_code == 401

    @pytest.mark.parametrize(
        ("form", "status"),
        [
            ({"name": "admin of *", "role": "viewer"}, 409),
            ({"name": "", "role": "viewer"}, 422),
            ({"name": "x\ny", "role": "viewer"}, 422),
            ({"name": "x", "role": "root"}, 422),
            ({"name": "x", "role": "viewer", "tenant": ""}, 422),
            ({"name": "x", "role": "viewer", "expires_in": "soon"}, 422),
            ({"name": "x", "role": "viewer", "expires_in": "0s"}, 422),
            ({"name": "x", "role": "viewer", "expires_in": "9000000000w"}, 422),
        ],
        ids=str,
    )
    def test_a_token_that_cannot_be_is_refused(
        self, memory_backend: Backend, form: dict[str, str], status: int
    ) -> None:
        headers = token_for(memory_backend, "admin")
        client = TestClient(create_app(memory_backend), headers=headers)
        answer = client.post(f"{API}/tokens", json=form)
        assert answer.status_code == status
        assert answer.json()["detail"]
        assert len(memory_backend.store.tokens()) == 1

    def test_an_admin_of_a_tenant_stays_in_it(self, backend: Backend) -> None:
        app = create_app(backend)
        everything = TestClient(app, headers=token_for(backend, "admin"))
        narrow = TestClient(app, headers=token_for(backend, "admin", "a"))
        for tenant in ("*", "b"):
            form = {"name": f"of {tenant}", "role": "admin", "tenant": tenant}
            assert narrow.post(f"{API}/tokens", json=form).status_code == 403
        form = {"name": "own", "role": "admin", "tenant": "a"}
        assert narrow.post(f"{API}/tokens", json=form).status_code == 201
        assert [each["name"] for each in narrow.get(f"{API}/tokens").json()] == [
            "admin of a",
            "own",
        ]
        other = everything.get(f"{API}/tokens").json()[0]
        assert other["tenant"] == "*"
        assert narrow.delete(f"{API}/tokens/{other['id']}").status_code == 404
        everything.post(f"{API}/views", json={"name": "x", "query": ""})
        shown = narrow.get(f"{API}/audit").json()["items"]
        assert {line["tenant"] for line in shown} == {"a"}
        assert {line["tenant"] for line in everything.get(f"{API}/audit").json()["items"]} == {
            "a",
            "*",
        }


class TestAudit:
    def test_it_is_read_page_by_page(self, admin: TestClient) -> None:
        for number in range(5):
            admin.post(f"{API}/views", json={"name": str(number), "query": ""})
        seen, cursor = [], None
        while True:
            params = {"limit": "2", **({"cursor": cursor} if cursor else {})}
            page = admin.get(f"{API}/audit", params=params).json()
            seen += [line["id"] for line in page["items"]]
            cursor = page["next"]
            if cursor is None:
                break
        assert len(seen) == 5
        assert seen == sorted(seen, reverse=True)

    @pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "9" * 30, "\N{SUPERSCRIPT TWO}"])
    def test_a_cursor_that_is_none_is_refused(self, memory_backend: Backend, cursor: str) -> None:
        headers = token_for(memory_backend, "admin")
        client = TestClient(create_app(memory_backend), headers=headers)
        assert client.get(f"{API}/audit", params={"cursor": cursor}).status_code == 422


class TestViews:
    def test_a_view_is_for_its_owner_and_shared_ones_for_the_tenant(self, backend: Backend) -> None:
        app = create_app(backend)
        ada = TestClient(app, headers=token_for(backend, "viewer", "a", "ada"))
        bob = TestClient(app, headers=token_for(backend, "viewer", "a", "bob"))
        eve = TestClient(app, headers=token_for(backend, "viewer", "b", "eve"))
        mine = ada.post(f"{API}/views", json={"name": "mine", "query": "state=failed"})
        assert mine.status_code == 201
        assert mine.json()["owner"] == "ada"
        ours = ada.post(
            f"{API}/views", json={"name": "ours", "query": "", "shared": True, "page": "logs"}
        ).json()
        assert [view["name"] for view in ada.get(f"{API}/views").json()] == ["mine", "ours"]
        assert [view["name"] for view in bob.get(f"{API}/views").json()] == ["ours"]
        assert eve.get(f"{API}/views").json() == []
        assert ada.get(f"{API}/views", params={"page": "logs"}).json() == [ours]
        assert bob.delete(f"{API}/views/{ours['id']}").status_code == 404
        assert ada.delete(f"{API}/views/{ours['id']}").status_code == 204
        assert bob.get(f"{API}/views").json() == []

    def test_a_view_needs_a_name(self, admin: TestClient) -> None:
        assert admin.post(f"{API}/views", json={"name": " ", "query": ""}).status_code == 422


def test_an_event_is_given_once(admin: TestClient, backend: Backend) -> None:
    backend.client.deploy(WAITING)
    form = {"name": "answer", "key": "k", "payload": {"n": 1}, "id": "e1"}
    assert admin.post(f"{API}/events", json=form).json() == {"new": True}
    assert admin.post(f"{API}/events", json=form).json() == {"new": False}


def test_health_says_what_is_missing(admin: TestClient, backend: Backend) -> None:
    health = admin.get(f"{API}/health").json()
    assert (health["mode"], health["auth"]) == ("serve", True)
    names = {None: "memory", "postgresql": "PostgreSQL", "mongodb": "MongoDB"}
    scheme = None if backend.database is None else backend.database.partition(":")[0]
    assert health["database"] == names[scheme]
    checks = {check["name"]: check for check in health["checks"]}
    assert checks["database"]["ok"]
    assert checks["deployed"]["hint"] == "afl deploy FLOWS"
    assert not checks["workers"]["ok"]
    backend.client.deploy(WAITING)
    checks = {each["name"]: each for each in admin.get(f"{API}/health").json()["checks"]}
    assert checks["deployed"]["ok"]


def test_health_names_what_work_waits_for_to_those_who_see_all(
    admin: TestClient, backend: Backend
) -> None:
    backend.client.deploy(WAITING)
    backend.client.submit("demo.Wait", {"key": "k"})
    checks = {each["name"]: each for each in admin.get(f"{API}/health").json()["checks"]}
    assert checks["waiting"] == {
        "name": "waiting",
        "ok": False,
        "sentence": "Work waits for afl:execute, and no live worker serves that.",
        "hint": "afl worker",
    }
    narrow = TestClient(create_app(backend), headers=token_for(backend, "admin", "a"))
    told = [each["name"] for each in narrow.get(f"{API}/health").json()["checks"]]
    assert told == ["database", "deployed", "workers", "facets", "dead letters", "oldest task"]


def test_health_names_no_address(admin: TestClient, backend: Backend) -> None:
    assert "127.0.0.1" not in admin.get(f"{API}/health").text


def test_the_mode_of_a_development_server(memory_backend: Backend) -> None:
    backend = replace(memory_backend, dev=DevState(), auth=False)
    client = TestClient(create_app(backend), base_url="http://localhost")
    health = client.get(f"{API}/health").json()
    assert (health["mode"], health["auth"]) == ("dev", False)


class TestReadiness:
    def test_a_server_on_a_store_that_answers_is_ready(self, anonymous: TestClient) -> None:
        assert anonymous.get("/livez").json() == {"status": "ok"}
        assert anonymous.get("/readyz").json() == {"status": "ok"}

    @needs_postgres
    def test_a_database_that_is_behind_or_away_makes_it_unready(
        self, memory_backend: Backend
    ) -> None:
        with empty_database() as url:
            client = TestClient(create_app(replace(memory_backend, database=url)))
            answer = client.get("/readyz")
            assert answer.status_code == 503
            assert answer.json()["code"] == "server.not_ready"
            assert answer.json()["hint"] == "Run `afl db migrate`."
            name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert "cannot be reached" in answer.json()["detail"]
        assert str(name) not in answer.text
        assert client.get("/livez").status_code == 200
