"""`afl db rotate` on a real database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from afl.app.migrating import migrate
from afl.app.services import connect
from afl.cli import exit_codes
from afl.kernel.model import ClaimRequest, Close, Commit, Outcome, TaskSpec, WorkerId, WorkerSpec
from afl.kernel.postgres.database import Database
from afl.kernel.postgres.store import PostgresStore
from afl.runtime.step import WorkflowId
from afl.server.postgres_store import PostgresServerStore
from afl.server.store import AuditEntry
from tests.cli.deployed import deployed_database, finished, worker
from tests.cli.runner import process, run
from tests.cli.test_json_shapes import validate
from tests.kernel.postgres.databases import (
    clear,
    empty_database,
    migrated_database,
    server_is_there,
    set_clock,
)

pytestmark = pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")
WORKER = WorkerId("w")


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with migrated_database() as url:
        migrate(url)
        yield url


@pytest.fixture
def url(database: str) -> str:
    """A database with two tasks that closed 40 days ago, one 20 days ago, and one that is open."""
    clear(database)
    finish(database, days_ago=40, tasks=2)
    finish(database, days_ago=20, tasks=1)
    with PostgresStore.connect(database, max_size=1) as store:
        store.enqueue([TaskSpec("test", "open")])
    return database


def finish(url: str, *, days_ago: int, tasks: int) -> None:
    """Closes tasks, each a run of its own, on a clock that is behind."""
    past = datetime.now(UTC) - timedelta(days=days_ago)
    database = Database(url, max_size=1, prepare=lambda connection: set_clock(connection, past))
    with PostgresStore(database) as store:
        store.register(WorkerSpec(WORKER, "w", handlers=("work",)))
        store.enqueue([TaskSpec("test", "work") for _ in range(tasks)])
        held = store.claim(ClaimRequest(WORKER, ("work",), n=tasks))
        store.commit([Commit(claim.fence, Close(Outcome.SUCCESS)) for claim in held])


def left(url: str) -> int:
    with PostgresStore.connect(url, max_size=1) as store:
        return len(store.find_tasks(limit=10_000))


def test_what_is_older_than_the_default_goes_once(url: str) -> None:
    result = run("db", "rotate", "--database", url)
    assert (result.exit_code, result.stdout) == (exit_codes.OK, "")
    assert result.stderr == "removed 2 tasks\n"
    assert left(url) == 2
    again = run("db", "rotate", "--database", url)
    assert again.exit_code == exit_codes.OK
    assert again.stderr == "nothing to do: no run is that old\n"


def test_the_age_is_the_option_else_the_setting(url: str) -> None:
    kept = {"AFL_DATABASE_URL": url, "AFL_RETENTION": "50d"}
    assert b"nothing to do" in process("db", "rotate", variables=kept).stderr
    shorter = {**kept, "AFL_RETENTION": "10d"}
    told = process("db", "rotate", "--older-than", "30d", variables=shorter)
    assert told.stderr == b"removed 2 tasks\n"
    assert process("db", "rotate", variables=shorter).stderr == b"removed 1 task\n"
    assert left(url) == 1


def test_open_work_stays_however_short_the_age(url: str) -> None:
    assert "removed 3 tasks" in run("db", "rotate", "--older-than", "0s", "--database", url).stderr
    assert left(url) == 1


def test_an_age_beyond_the_calendar_is_no_mistake(url: str) -> None:
    result = run("db", "rotate", "--older-than", "15250284452w", "--database", url)
    assert result.exit_code == exit_codes.OK
    assert left(url) == 4


def test_the_limit_ends_it_early_and_says_so(url: str) -> None:
    first = run("db", "rotate", "--limit", "1", "--database", url)
    assert first.stderr == (
        "removed 1 task\n"
        "help: the limit is reached and there may be more; run the command again for them\n"
    )
    assert left(url) == 3
    second = run("db", "rotate", "--limit", "5", "--database", url)
    assert second.stderr == "removed 1 task\n"


def test_more_than_one_batch_goes(url: str) -> None:
    finish(url, days_ago=60, tasks=2_500)
    assert run("db", "rotate", "--database", url).stderr == "removed 2502 tasks\n"
    assert left(url) == 2


def test_json_has_its_shape(url: str) -> None:
    for removed, reached in ((1, True), (1, True), (0, False)):
        result = run("db", "rotate", "--limit", "1", "--json", "--database", url)
        validate(result.stdout, "db")
        assert json.loads(result.stdout) == {
            "version": 1,
            "removed": removed,
            "runs_removed": 0,
            "audit_removed": 0,
            "limit_reached": reached,
        }
        assert result.stderr == ""


def test_runs_go_with_their_steps_and_no_sooner() -> None:
    with deployed_database() as url, worker(url):
        name = finished(url, "Hello", "-i", "name=Ada")
        assert "nothing to do" in run("db", "rotate", "--database", url).stderr
        told = run("db", "rotate", "--older-than", "1ms", "--database", url)
        assert told.stderr == "removed 1 run and 3 tasks\n"
        gone = run("runs", "get", name, "--database", url)
        assert gone.exit_code == exit_codes.UNREADABLE
        assert gone.stderr.startswith(f"error: There is no run {name}")
        with connect(url) as services:
            assert services.persistence.get_steps_by_workflow(WorkflowId(name)) == []


def test_the_audit_trail_has_an_age_of_its_own(url: str) -> None:
    now = datetime.now(UTC)
    with PostgresServerStore.connect(url, max_size=1) as store:
        store.rotate_audit(timedelta())
        for days in [*[400] * 1_500, 200, 1]:
            at = now - timedelta(days=days)
            store.begin_audit(AuditEntry("ada", "admin", "a", "POST /runs", "", at=at))
        first = run("db", "rotate", "--older-than", "50d", "--database", url)
        assert first.stderr == (
            "nothing to do: no run is that old\nremoved from the audit trail: 1500\n"
        )
        assert len(store.audit()) == 2
        shorter = {"AFL_DATABASE_URL": url, "AFL_AUDIT_RETENTION": "100d"}
        told = process("db", "rotate", "--older-than", "50d", "--json", variables=shorter)
        assert json.loads(told.stdout)["audit_removed"] == 1
        (left,) = store.audit()
        assert left.at == now - timedelta(days=1)


def test_a_database_without_the_schema_says_what_to_do() -> None:
    with empty_database() as empty:
        result = run("db", "rotate", "--database", empty)
        assert result.exit_code == exit_codes.FAILED
        assert result.stderr.startswith("error: the schema of the database is not up to date: ")
        assert "help: `afl db migrate` applies what is pending" in result.stderr
        with psycopg.connect(empty) as connection:
            row = connection.execute("select to_regnamespace('afl')").fetchone()
        assert row == (None,), "the command has changed a database that it refused"


def test_a_database_that_goes_away_says_what_is_done(url: str) -> None:
    """Each batch is a transaction: what one has removed stays removed when the next one fails."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "create function public.refuse() returns trigger language plpgsql as "
            "$$ begin raise exception using errcode = '57P01'; end $$"
        )
        connection.execute(
            "create trigger refuse after delete on afl.task for each row "
            "when (old.name = 'poison') execute function public.refuse()"
        )
    try:
        finish(url, days_ago=60, tasks=1_000)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "update afl.task set name = 'poison', short_name = 'poison' "
                "where closed_at > now() - interval '50 days'"
            )
        result = run("db", "rotate", "--database", url)
        assert result.exit_code == exit_codes.FAILED
        assert result.stderr.startswith("error: stopped after 1000 tasks: ")
        assert "run the command again for the rest" in result.stderr
        assert left(url) == 4
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("drop function public.refuse() cascade")
