"""The second wall between tenants: with the checks of the routes taken away, PostgreSQL itself
shows a tenant nothing of the others; writes go on, and who sees every tenant sees all."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest

from afl.base.settings import Settings
from afl.kernel.confining import confined
from afl.kernel.model import RunId, State, TaskId
from afl.kernel.postgres.database import Row, Sent, Session
from afl.kernel.postgres.statements import Hot, Parameters
from afl.kernel.postgres.walls import Wall
from afl.logs.postgres_store import PostgresLogStore
from afl.runtime.run_search import RunFilter
from afl.runtime.step import WorkflowId
from afl.server.access import Caller
from afl.server.application import API
from afl.server.bulk.runner import BulkRunner
from afl.server.openapi import document
from afl.server.serving import open_backend
from afl.server.store import Job
from afl.server.store_reads import store_reads
from afl.server.system_views import run_of
from tests.server.house import FILLED, OPEN, ROWS, TENANTS, House


@pytest.fixture
def house(empty_url: str) -> Iterator[House]:
    with open_backend(empty_url, Settings()) as backend:
        yield House(backend)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first wall is gone: everything is everybody's."""
    monkeypatch.setattr(Caller, "sees", lambda _self, _tenant: True)


def walled(house: House) -> dict[str, str | None]:
    found = house.database.rows(b"select name, condition from afl.tenant_sees_v1()", {})
    return dict(found)


class TestTables:
    def test_each_shows_a_tenant_its_own_rows_alone(self, house: House) -> None:
        tables = [name for name, condition in walled(house).items() if condition is not None]
        assert set(tables) == set(ROWS) | FILLED
        for table in tables:
            everything = house.rows(table)
            seen = {}
            for tenant in TENANTS:
                with confined(tenant):
                    seen[tenant] = house.rows(table)
                assert seen[tenant], table
                assert seen[tenant] < everything, table
            assert not seen["amber"] & seen["blue"], table
            with confined("nobody"):
                assert house.rows(table) == set(), table

    def test_every_other_table_belongs_to_no_tenant_or_cannot_be_read(self, house: House) -> None:
        told = walled(house)
        assert {name for name, condition in told.items() if condition is None} == OPEN
        statement = b"select relname from pg_class where relnamespace = 'afl'::regnamespace and "
        every = house.database.rows(statement + b"relkind in ('r', 'v', 'm', 'p')", {})
        shut = {row[0] for row in every} - set(told)
        assert {"server_secret", "server_answer", "outbox", "mail", "log_gap"} <= shut
        for table in shut:
            with confined("amber"), pytest.raises(psycopg.errors.InsufficientPrivilege):
                house.rows(table)

    def test_what_is_open_names_no_tenant_and_no_run(self, house: House) -> None:
        found = house.database.rows(
            b"select table_name || '.' || column_name from information_schema.columns "
            b"where table_schema = 'afl' and table_name = any(%(tables)s) "
            b"and column_name in ('tenant', 'run', 'task', 'caller')",
            {"tables": sorted(OPEN)},
        )
        assert found == []

    def test_work_without_a_run_is_of_the_tenant_that_it_names(self, house: House) -> None:
        with psycopg.connect(str(house.backend.database)) as connection:
            connection.execute("update afl.task set run = 'loose' where tenant = 'blue'")
        with confined("amber"):
            assert house.persistence.kernel.get_task(TaskId(house.tasks["blue"])) is None
        with confined("blue"):
            assert house.persistence.kernel.get_task(TaskId(house.tasks["blue"])) is not None

    def test_the_run_says_whose_its_work_is(self, house: House) -> None:
        with psycopg.connect(str(house.backend.database)) as connection:
            connection.execute(
                "update afl.task set tenant = 'amber' where id = %s", [house.tasks["blue"]]
            )
        with confined("amber"):
            assert house.persistence.kernel.get_task(TaskId(house.tasks["blue"])) is None
        with confined("blue"):
            assert house.persistence.kernel.get_task(TaskId(house.tasks["blue"])) is not None

    def test_without_a_tenant_the_role_sees_nothing(self, house: House) -> None:
        with psycopg.connect(str(house.backend.database)) as connection:
            connection.execute("select set_config('role', afl.tenant_role_v1(), true)")
            assert connection.execute("select count(*) from afl.run").fetchone() == (0,)

    def test_where_no_tenant_is_set_nothing_more_is_sent(
        self, house: House, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = WorkflowId(house.runs["blue"])
        with confined("blue"):
            house.persistence.get_run(run)
        house.persistence.get_run(run)
        trips: list[int] = []
        call, call_all = Session.call, Session.call_all

        def one(session: Session, statement: Hot, parameters: Parameters) -> list[Row]:
            trips.append(1)
            return call(session, statement, parameters)

        def several(session: Session, statements: Sequence[Sent]) -> list[list[Row]]:
            trips.append(len(statements))
            return call_all(session, statements)

        monkeypatch.setattr(Session, "call", one)
        monkeypatch.setattr(Session, "call_all", several)
        assert house.persistence.get_run(run) is not None
        assert trips == [1]
        with confined("blue"):
            assert house.persistence.get_run(run) is not None
        # the role goes along with the read
        assert trips == [1, 2]

    def test_the_role_lasts_no_longer_than_what_is_read(self, house: House) -> None:
        with confined("amber"):
            assert house.persistence.get_run(WorkflowId(house.runs["blue"])) is None
            for _ in range(3):
                house.persistence.find_runs()
        statement = b"select current_user = session_user, current_setting('afl.tenant', true)"
        for _ in range(20):
            assert house.database.rows(statement, {})[0][0] is True
        assert house.persistence.get_run(WorkflowId(house.runs["blue"])) is not None


def reads_of(house: House, tenant: str) -> dict[str, Any]:
    """What each read of the stores says of the run of a tenant."""
    persistence, kernel = house.persistence, house.kernel
    run, task = WorkflowId(house.runs[tenant]), TaskId(house.tasks[tenant])
    logs = house.backend.logs
    assert isinstance(logs, PostgresLogStore)
    reads = store_reads(persistence)
    store = house.backend.store
    return {
        "run": persistence.get_run(run),
        "runs": persistence.get_runs([run]),
        "find_runs": [each.id for each in persistence.find_runs() if each.id == run],
        "search": persistence.search_runs(RunFilter(tenant=tenant)),
        "labels": persistence.search_runs(RunFilter(labels={"secret": f"word-of-{tenant}"})),
        "text": persistence.search_runs(RunFilter(text=run)),
        "count": persistence.count_runs(RunFilter(tenant=tenant)),
        "steps": persistence.get_steps_by_workflow(run),
        "children": persistence.child_steps(run, ""),
        "count_steps": persistence.count_steps(run),
        "tallies": persistence.tally(run),
        "logs": persistence.get_logs(run),
        "superseded": persistence.get_superseded(run),
        "history": persistence.history(run),
        "people": [each.id for each in persistence.human_tasks() if each.id == task],
        "task": kernel.get_task(task),
        "tasks": [each.id for each in kernel.find_tasks(limit=500) if run_of(each) == run],
        "tasks_of_run": kernel.find_tasks(run=RunId(run)),
        "calls": kernel.calls_of(TaskId(run)),
        "standing": kernel.standing([task]),
        "losses": kernel.losses_of([task]),
        "in_state": [
            each.id for each in reads.in_state(State.READY, None, 500) if run_of(each) == run
        ],
        "oldest": [each.id for each in reads.oldest("afl.people", "Approve", 9) if each.id == task],
        "streams": logs.streams(run),
        "latest_streams": [each for each in logs.latest_streams(9) if each.key.run == run],
        "heads": logs.heads({house.streams[tenant]: 1}),
        "tokens": [each.name for each in store.tokens() if each.tenant == tenant],
        "audit": store.audit(tenant=tenant),
        "views": store.views("x", tenant),
        "job": store.job(tenant),
        "jobs": [each.id for each in store.jobs() if each.tenant == tenant],
    }


class TestReads:
    def test_each_read_shows_what_is_there_to_its_own_tenant_and_to_all(self, house: House) -> None:
        everything = reads_of(house, "blue")
        assert [name for name, found in everything.items() if not found] == []
        with confined("blue"):
            own = reads_of(house, "blue")
        assert {name for name in own if own[name] != everything[name]} == set()

    def test_no_read_shows_anything_to_another(self, house: House) -> None:
        with confined("amber"):
            found = reads_of(house, "blue")
        assert {name: each for name, each in found.items() if each} == {}


def gets() -> list[str]:
    paths: dict[str, Any] = json.loads(document())["paths"]
    return sorted(path for path, verbs in paths.items() if "get" in verbs)


def told(house: House) -> set[str]:
    """The routes that tell a caller of one tenant something of the other."""
    admin = house.caller("admin", "amber")
    names = {
        "run": house.runs["blue"],
        "task": house.tasks["blue"],
        "turn": house.tasks["blue"],
        "job": "blue",
    }
    params = {"path": "0/person", "step": "0/person", "text": house.runs["blue"], "parent": "none"}
    words = ("word-of-blue", house.runs["blue"], house.tasks["blue"], "wall blue")
    found = set()
    for path in gets():
        # one never ends, and links are for whoever has them
        if path.endswith(("/stream", "/links/{token}")):
            continue
        route = path
        for name, value in names.items():
            route = route.replace(f"{{{name}}}", value)
        for given in ({}, params):
            answer = admin.get(route, params=given)
            assert answer.status_code < 500 or answer.status_code in (501, 503), route
            if answer.status_code == 200 and any(word in answer.text for word in words):
                found.add(path)
    return found


@pytest.mark.usefixtures("broken")
class TestBrokenRoutes:
    def test_no_route_tells_a_tenant_anything_of_another(self, house: House) -> None:
        assert told(house) == set()

    def test_without_the_second_wall_they_would(
        self, house: House, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Wall, "before", lambda _self, _session: ())
        assert len(told(house)) > 15

    def test_the_same_routes_tell_those_who_see_every_tenant(self, house: House) -> None:
        everyone = house.caller("admin", "*")
        for tenant in TENANTS:
            answer = everyone.get(f"{API}/runs/{house.runs[tenant]}")
            assert answer.json()["tenant"] == tenant
            assert everyone.get(f"{API}/inbox/{house.tasks[tenant]}").status_code == 200
        assert len(everyone.get(f"{API}/runs").json()["items"]) == 2

    def test_nobody_acts_on_what_is_not_theirs(self, house: House) -> None:
        operator = house.caller("operator", "amber")
        run, task = house.runs["blue"], house.tasks["blue"]
        for verb in ("cancel", "pause", "rerun", "retry"):
            answer = operator.post(f"{API}/runs/{run}/actions/{verb}", json={})
            assert answer.status_code == 404, verb
        form = {"verb": "answer", "values": {"ok": True}}
        assert operator.post(f"{API}/inbox/{task}", json=form).status_code == 404
        preview = operator.post(f"{API}/bulk/preview", json={"verb": "cancel", "runs": [run]})
        assert preview.json()["sample"] == []
        found = house.persistence.get_run(WorkflowId(run))
        assert found is not None
        assert (found.state, found.pause_requested) == ("running", False)


def until_ended(house: House, id_: str) -> Job:
    pause = threading.Event()
    for _ in range(3000):
        job = house.backend.store.job(id_)
        if job is not None and job.state != "running":
            return job
        pause.wait(0.02)
    pytest.fail("the job did not end in time")


@pytest.mark.usefixtures("broken")
def test_a_job_leaves_alone_what_is_not_of_its_tenant(house: House) -> None:
    operator, run = house.caller("operator", "amber"), house.runs["blue"]
    form = {"verb": "cancel", "runs": [run, house.runs["amber"]]}
    job = operator.post(f"{API}/bulk", json=form).json()["id"]
    runner = BulkRunner(house.backend)
    runner.start()
    try:
        ended = until_ended(house, job)
    finally:
        runner.stop()
    assert ended.state == "done"
    assert [each["run"] for each in ended.failures] == [run]
    found = house.persistence.get_run(WorkflowId(run))
    assert found is not None
    assert found.state == "running"


class TestWrites:
    def test_a_caller_of_one_tenant_does_all_that_it_may(self, house: House) -> None:
        admin, run = house.caller("admin", "amber"), house.runs["amber"]

        def done(path: str, form: object, status: int = 200) -> Any:  # noqa: ANN401 - JSON
            answer = admin.post(f"{API}{path}", json=form, headers={"Idempotency-Key": path})
            assert answer.status_code == status, answer.text
            return answer.json()

        begun = done("/runs", {"workflow": "shop.Hello", "inputs": {"name": "A"}, "key": "k"}, 201)
        assert begun["run"]["tenant"] == "amber"
        done(f"/runs/{run}/actions/pause", {})
        done(f"/runs/{run}/actions/resume", {})
        answered = done(
            f"/inbox/{house.tasks['amber']}", {"verb": "answer", "values": {"ok": True}}
        )
        assert "the run goes on" in answered["sentence"]
        done(f"/runs/{run}/actions/cancel", {})
        view = done("/views", {"name": "v", "page": "runs", "query": "q", "shared": False}, 201)
        assert admin.delete(f"{API}/views/{view['id']}").status_code == 204
        token = done("/tokens", {"name": "new", "role": "viewer", "tenant": "amber"}, 201)
        assert admin.delete(f"{API}/tokens/{token['id']}").status_code == 204
        job = done("/bulk", {"verb": "rerun", "runs": [run]}, 202)
        assert admin.get(f"{API}/bulk/{job['id']}").json()["total"] == 1
        mine = house.backend.store.audit(tenant="amber", limit=50)
        assert {entry.status for entry in mine} <= {200, 201, 202, 204}
