"""Who may do what: every route, every kind of caller."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.testclient import TestClient

from afl.server.access import Needs, Role
from afl.server.application import API, create_app
from afl.server.backend import Backend
from afl.server.headers import SAFE_METHODS
from afl.server.limits import Limits
from afl.server.tokens import new_token
from tests.server.calling import last_entry, token_for

#: Routes that nobody needs a token for: they check a signature of their own, or tell no secrets.
OPEN = {
    "GET /links/{token}",
    "POST /links/{token}",
    "POST /hooks/{name}/call",
    "POST /csp-report",
    "GET /openapi.json",
    "HEAD /openapi.json",
}
NOBODYS = "00000000-0000-7000-8000-000000000000"
PLENTY = Limits(burst=100_000)
BAD = {"Authorization": f"Bearer afl_{'x' * 43}"}
FLOW = """\
namespace demo {
  event facet Greet(name: String) => (text: String)
  workflow Hello(name: String = "world") => (text: String) andThen {
    hello = Greet(name = $.name)
    yield Hello(text = hello.text)
  }
}
"""


@dataclass(frozen=True, slots=True)
class Route:
    """A route of the API: its path is without the prefix."""

    method: str
    path: str
    needs: Needs | None
    #: parameters that it cannot do without
    query: tuple[str, ...]

    @property
    def action(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def noun(self) -> str:
        return self.path.removeprefix("/records").split("/")[1]

    def ask(
        self, client: TestClient, headers: dict[str, str] | None = None, run: str = NOBODYS
    ) -> int:
        """The status of a request, with something in the place of each parameter."""
        path = self.path.replace("{run}", run).replace("{verb}", "cancel")
        url = API + re.sub(r"\{\w+(:path)?\}", NOBODYS, path)
        body: dict[str, str] | None = None if self.method in SAFE_METHODS else {}
        params = dict.fromkeys(self.query, "0")
        answer = client.request(self.method, url, params=params, headers=headers, json=body)
        return answer.status_code


def routes_of(app: FastAPI) -> Iterator[Route]:
    """Every route of the API, for each of its methods."""
    for context in iter_route_contexts(app.routes):
        path = context.path or ""
        if not path.startswith(f"{API}/"):
            continue
        needs: Needs | None = None
        query: tuple[str, ...] = ()
        if isinstance(context.original_route, APIRoute):
            wanted = context.original_route.dependant
            found = (each.call for each in wanted.dependencies)
            needs = next((each for each in found if isinstance(each, Needs)), None)
            query = tuple(
                each.alias for each in wanted.query_params if each.field_info.is_required()
            )
        for method in context.methods or ():
            yield Route(method, path.removeprefix(API), needs, query)


def test_only_the_routes_that_should_be_are_open(memory_backend: Backend) -> None:
    app = create_app(memory_backend)
    found = {route.action for route in routes_of(app) if route.needs is None}
    assert found == OPEN


def test_who_has_no_token_or_a_bad_one_is_refused_everywhere(backend: Backend) -> None:
    app = create_app(backend, PLENTY)
    client = TestClient(app)
    for route in routes_of(app):
        if route.needs is None:
            continue
        for headers in (None, BAD):
            assert route.ask(client, headers) == 401, route
            entry = last_entry(backend)
            told = (entry.subject, entry.action, entry.status)
            assert told == ("anonymous", route.action, 401)


def test_a_viewer_reads_and_changes_nothing(backend: Backend) -> None:
    app = create_app(backend, PLENTY)
    client = TestClient(app, headers=token_for(backend, "viewer"))
    refused = 0
    for route in routes_of(app):
        if route.needs is None or route.needs.role is Role.VIEWER:
            continue
        assert route.ask(client) == 403, route
        entry = last_entry(backend)
        assert (entry.role, entry.action, entry.status) == ("viewer", route.action, 403)
        refused += 1
    assert refused > 20


def test_what_a_viewer_may_send_changes_nothing_but_its_own_views(memory_backend: Backend) -> None:
    mutating = {
        route.path
        for route in routes_of(create_app(memory_backend))
        if route.method not in SAFE_METHODS
        and route.needs is not None
        and route.needs.role is Role.VIEWER
    }
    assert mutating == {
        "/check",
        "/check/graph",
        "/schedules/preview",
        "/try",
        "/views",
        "/views/{view}",
    }


def test_who_is_of_one_tenant_does_not_reach_the_installation(backend: Backend) -> None:
    app = create_app(backend, PLENTY)
    client = TestClient(app, headers=token_for(backend, "admin", "other"))
    for route in routes_of(app):
        if route.needs is not None and route.needs.everything:
            assert route.ask(client) == 403, route
            assert last_entry(backend).tenant == "other"


def test_what_belongs_to_no_tenant_is_for_those_of_all(memory_backend: Backend) -> None:
    wide = {"breakers", "dead-letters", "events", "hooks", "mail", "queues", "schedules", "workers"}
    narrow = {
        route.path
        for route in routes_of(create_app(memory_backend))
        if route.noun in wide and route.needs is not None and not route.needs.everything
    }
    assert narrow == set()


def test_the_run_of_another_tenant_is_not_there(backend: Backend) -> None:
    backend.client.deploy(FLOW)
    run = backend.client.submit("demo.Hello").id
    app = create_app(backend, PLENTY)
    other = TestClient(app, headers=token_for(backend, "admin", "other"))
    own = TestClient(app, headers=token_for(backend, "admin", "default"))
    routes = [each for each in routes_of(app) if "{run}" in each.path and each.needs is not None]
    statuses = []
    for route in routes:
        status = route.ask(other, run=run)
        # as if there were no such run; a few routes look at their parameters first
        assert status == route.ask(other, run=NOBODYS), route
        assert status in (404, 422), route
        statuses.append(status)
    assert statuses.count(404) > 15
    assert own.get(f"{API}/runs/{run}").status_code == 200


def test_a_token_is_good_until_it_expires_or_is_revoked(backend: Backend) -> None:
    client = TestClient(create_app(backend))
    now = backend.services.persistence.now()
    old, secret = new_token("old", "viewer", "*", now - timedelta(days=2), timedelta(days=1))
    backend.store.add_token(old)
    answer = client.get(f"{API}/me", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 401
    assert "expired" in answer.json()["detail"]
    assert answer.headers["www-authenticate"] == "Bearer"
    good, secret = new_token("good", "operator", "a", now, timedelta(days=1))
    backend.store.add_token(good)
    headers = {"Authorization": f"bearer {secret}"}
    assert client.get(f"{API}/me", headers=headers).json() == {
        "subject": "good",
        "role": "operator",
        "tenant": "a",
        "can": ["viewer", "operator"],
    }
    used = backend.store.tokens()
    assert [token.last_used_at is not None for token in used] == [False, True]
    backend.store.revoke_token(good.id)
    assert client.get(f"{API}/me", headers=headers).status_code == 401


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic YWRhOnB3",
        "Bearer afl_short",
        "Bearer \N{LATIN SMALL LETTER E WITH ACUTE}",
        "afl_",
    ],
)
def test_what_is_no_token_is_refused(memory_backend: Backend, header: str) -> None:
    client = TestClient(create_app(memory_backend))
    answer = client.get(f"{API}/me", headers={b"Authorization": header.encode("latin-1")})
    assert answer.status_code == 401
    assert answer.json()["code"] == "server.not_signed_in"


def test_a_refusal_says_what_is_missing(memory_backend: Backend) -> None:
    client = TestClient(create_app(memory_backend), headers=token_for(memory_backend, "viewer"))
    problem = client.get(f"{API}/tokens").json()
    assert problem["detail"] == ("This needs the role admin, and viewer of * has the role viewer.")
    assert problem["hint"] == "Ask an admin for another token."


def test_who_asks_is_found_out_before_the_body_is_read(memory_backend: Backend) -> None:
    client = TestClient(create_app(memory_backend))
    headers = {"Content-Type": "application/json"}
    assert client.post(f"{API}/tokens", content=b"{", headers=headers).status_code == 401


def test_without_authentication_everybody_is_local(memory_backend: Backend) -> None:
    app = create_app(replace(memory_backend, auth=False))
    client = TestClient(app, base_url="http://127.0.0.1:7400")
    assert client.get(f"{API}/me").json() == {
        "subject": "local",
        "role": "admin",
        "tenant": "*",
        "can": ["viewer", "operator", "developer", "admin", "everything"],
    }
