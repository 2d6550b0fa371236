"""`afl doctor`."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from click.testing import Result

from afl import App, Client
from afl.cli import exit_codes
from afl.cli.doctoring.surroundings import check_clock, check_nats
from afl.kernel.model import TaskSpec
from afl.server.checks.findings import Grade
from tests.cli.deployed import (
    FLOW,
    ON_MONGO,
    deployed_database,
    finished,
    fresh_database,
    looks_into_postgres,
    submit,
    worker,
)
from tests.cli.runner import process, run
from tests.cli.test_json_shapes import validate
from tests.kernel.postgres.databases import empty_database, server_is_there
from tests.runtime.serving import eventually

needs_server = pytest.mark.skipif(
    not server_is_there(), reason="there is no PostgreSQL to test with"
)


def every(result: Result) -> list[dict[str, str | None]]:
    validate(result.stdout, "doctor")
    assert result.stderr == ""
    found: list[dict[str, str | None]] = json.loads(result.stdout)["findings"]
    return found


def findings(result: Result) -> dict[str | None, dict[str, str | None]]:
    return {each["check"]: each for each in every(result)}


def test_without_a_database_it_warns() -> None:
    result = run("doctor")
    assert result.exit_code == exit_codes.OK
    assert "ok    python" in result.stdout
    assert "warn  database      there is none, so only `afl run` works\n" in result.stdout
    assert "-> export AFL_DATABASE_URL=postgresql://host/name\n" in result.stdout
    assert result.stderr == "3 checks, 1 problem\n"
    assert run("doctor", "--strict").exit_code == exit_codes.FAILED


def test_a_database_that_cannot_be_reached_fails() -> None:
    result = run("doctor", "--json", "--database", "postgresql://127.0.0.1:1/nothing")
    assert result.exit_code == exit_codes.FAILED
    found = findings(result)
    assert found["database"]["grade"] == "fail"
    assert "cannot connect" in str(found["database"]["text"])
    assert "AFL_DATABASE_URL" in str(found["database"]["fix"])
    assert "schema" not in found


def test_a_database_that_is_no_postgresql_fails() -> None:
    result = run("doctor", "--json", "--database", "mysql://host/name")
    assert result.exit_code == exit_codes.FAILED
    assert (
        findings(result)["database"]["fix"]
        == "it looks like postgresql://host/name or mongodb://host/name"
    )


@needs_server
def test_a_schema_that_is_pending_fails() -> None:
    with empty_database() as conninfo:
        name = conninfo.partition("dbname=")[2].split()[0]
        result = run("doctor", "--json", "--database", f"postgresql://127.0.0.1/{name}")
    assert result.exit_code == exit_codes.FAILED
    found = findings(result)
    assert (found["database"]["grade"], found["schema"]["grade"]) == ("ok", "fail")
    assert found["schema"]["fix"] == "afl db migrate"


@needs_server
def test_nothing_deployed_and_nobody_there_warns() -> None:
    with fresh_database() as url:
        result = run("doctor", "--json", "--database", url)
    found = findings(result)
    assert result.exit_code == exit_codes.OK
    assert found["schema"]["grade"] == found["clock"]["grade"] == "ok"
    assert found["deployed"]["fix"] == "afl deploy FLOWS"
    assert found["workers"]["fix"] == "afl worker --handlers MODULE"


@needs_server
@looks_into_postgres
def test_facets_that_nobody_serves_and_tasks_that_wait() -> None:
    with deployed_database() as url:
        later = TaskSpec("event", "later", delay=timedelta(minutes=5))
        with Client(url) as client:
            client.operations.persistence.kernel.enqueue([later])
        found = findings(run("doctor", "--json", "--database", url))
        with psycopg.connect(url) as connection:
            connection.execute("update afl.task set run_at = now() - interval '5 minutes'")
        late = findings(run("doctor", "--json", "--database", url))
    told = "no live worker serves demo.Fetch, demo.Greet, demo.Store of `default`"
    assert found["facets"]["text"] == told
    assert found["oldest task"]["text"] == "nothing waits for a worker"
    assert late["oldest task"]["text"] == "the oldest of 1 task for workers waits 5m"
    assert late["oldest task"]["fix"] == "afl tasks list --state ready"


@needs_server
def test_names_that_work_waits_for_and_nobody_serves() -> None:
    flow = FLOW.replace("=> (n: Int)", '=> (n: Int) with Queue(name = "far")')
    half = App("half")
    with deployed_database(flow) as url:
        submit(url, "Total", "-i", 'names=["a"]')
        alone = run("doctor", "--database", url)
        with worker(url, half), Client(url) as client:
            kernel = client.operations.persistence.kernel
            eventually(
                lambda: {"demo.Greet", "demo.Fetch"} <= {task.name for task in kernel.find_tasks()},
                "tasks that nobody serves",
            )
            result = run("doctor", "--json", "--database", url)
            strict = run("doctor", "-q", "--strict", "--database", url)
    assert "work waits for afl:execute, and no live worker serves that\n" in alone.stdout
    assert "-> afl worker\n" in alone.stdout
    told = [each for each in every(result) if each["check"] == "waiting"]
    assert [(each["grade"], each["text"], each["fix"]) for each in told] == [
        (
            "warn",
            "work waits for demo.Greet, and no live worker serves that",
            "afl worker --handlers MODULE",
        ),
        (
            "warn",
            "work waits on the list far for demo.Fetch, and no live worker serves that",
            "afl worker --list far --handlers MODULE",
        ),
    ]
    assert result.exit_code == exit_codes.OK
    assert strict.exit_code == exit_codes.FAILED
    assert "warn  waiting       work waits for demo.Greet" in strict.stdout


@needs_server
def test_all_is_well_and_then_a_dead_letter() -> None:
    with deployed_database() as url, worker(url):
        well = run("doctor", "--database", url)
        assert well.exit_code == exit_codes.OK
        # MongoDB has no wall between tenants to check
        assert well.stderr == f"{11 if ON_MONGO else 12} checks, all well\n"
        assert run("doctor", "-q", "--database", url).stdout == ""
        finished(url, "Hello", "-i", "name=bad")
        found = findings(run("doctor", "--json", "--database", url))
    assert found["dead letters"]["grade"] == "warn"
    assert found["dead letters"]["fix"] == "afl dlq list"


@needs_server
def test_a_list_that_nobody_serves_warns() -> None:
    flow = FLOW.replace("=> (n: Int)", '=> (n: Int) with Queue(name = "far")')
    with deployed_database(flow) as url, worker(url):
        found = findings(run("doctor", "--json", "--database", url))
    assert found["lists"]["text"] == "no live worker serves the list far of `default`"
    assert found["lists"]["fix"] == "afl worker --list far --handlers MODULE"


@contextmanager
def listener(answer: bytes) -> Iterator[str]:
    """The address of something that says this to whoever comes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"nats://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def test_nats() -> None:
    assert check_nats(None).grade is Grade.OK
    with listener(b"INFO {}\r\n") as url:
        assert check_nats(url).grade is Grade.OK
    with listener(b"HTTP/1.1 400\r\n") as url:
        assert "is not NATS" in check_nats(url).text
    gone = process("doctor", "--json", variables={"AFL_NATS_URL": "nats://127.0.0.1:1"})
    assert gone.returncode == exit_codes.FAILED
    assert b"cannot connect to 127.0.0.1:1" in gone.stdout


@pytest.mark.parametrize(
    ("off", "grade"),
    [(0, Grade.OK), (1, Grade.OK), (5, Grade.WARN), (-5, Grade.WARN), (60, Grade.FAIL)],
)
def test_clocks_that_differ(off: int, grade: Grade) -> None:
    now = datetime.now(UTC)
    assert check_clock(now, now + timedelta(seconds=off)).grade is grade
