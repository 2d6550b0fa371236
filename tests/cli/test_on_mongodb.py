"""A user's walk through the commands, on a MongoDB. With `TEST_STORE=mongo` the other tests here
run on one, too."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from click.testing import Result

from afl import Client
from afl.cli import exit_codes
from tests.app.test_remote_cli import MORE
from tests.chaos.mongo_server import find_mongod
from tests.chaos.server import free_port
from tests.cli.deployed import finished, id_in, submit, write_project
from tests.cli.runner import run
from tests.cli.test_json_shapes import validate
from tests.cli.test_process_logs import started
from tests.cli.test_worker import SLOW, serving, told, wait_until_started
from tests.kernel.mongo.databases import empty_database, server_is_there
from tests.runtime.serving import eventually

pytestmark = pytest.mark.skipif(not server_is_there(), reason="there is no MongoDB to test with")

LEASE = ("--lease", "2s")


def afl(url: str, *args: str) -> Result:
    """A command that works."""
    result = run(*args, "--database", url)
    assert result.exit_code == exit_codes.OK, (result.stdout, result.stderr)
    return result


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with empty_database() as url:
        afl(url, "db", "migrate")
        deployed = run("deploy", "-", "--database", url, input=MORE)
        assert deployed.exit_code == exit_codes.OK, deployed.stderr
        yield url


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    write_project(folder, flow=MORE, handlers=SLOW)
    return folder


@pytest.fixture(scope="module")
def served(url: str, project: Path) -> Iterator[str]:
    """The database, with a worker on it."""
    with serving(project, url, *LEASE) as running:
        told(running.stdout)
        yield url


def test_the_schema_comes_by_migrations() -> None:
    with empty_database() as url:
        pending = run("db", "status", "--database", url)
        assert pending.exit_code == exit_codes.FAILED
        assert "0001_kernel  pending" in pending.stdout
        refused = run("runs", "list", "--database", url)
        assert "help: `afl db migrate` applies what is pending" in refused.stderr
        applied = json.loads(afl(url, "db", "migrate", "--json").stdout)["applied"]
        assert f"{len(applied)} migrations pending" in refused.stderr
        assert afl(url, "db", "migrate").stderr == "nothing to do: up to date\n"
        assert "pending" not in afl(url, "db", "status").stdout
        assert afl(url, "db", "rotate").stderr == "nothing to do: no run is that old\n"
        found = json.loads(afl(url, "doctor", "--json").stdout)["findings"]
        checks = {each["check"]: each for each in found}
        assert re.fullmatch(r"MongoDB \d+ answers", checks["database"]["text"])
        assert checks["schema"]["grade"] == checks["clock"]["grade"] == "ok"


@contextmanager
def lone_server(folder: Path) -> Iterator[str]:
    """The URL of a server that is no replica set."""
    program = find_mongod()
    if program is None:
        pytest.skip("there is no mongod to start")
    port = free_port()
    place = ("--dbpath", str(folder), "--port", str(port), "--bind_ip", "127.0.0.1")
    with subprocess.Popen(
        [program, *place, "--nounixsocket", "--logpath", str(folder / "log")],
        stdout=subprocess.DEVNULL,
    ) as running:
        try:
            yield f"mongodb://127.0.0.1:{port}/afl"
        finally:
            running.kill()


def test_a_server_that_is_no_replica_set_is_refused(tmp_path: Path) -> None:
    with lone_server(tmp_path) as url:
        refused = run("db", "migrate", "--database", url)
        assert refused.exit_code == exit_codes.FAILED
        assert "is a single server without a replica set" in refused.stderr
        assert "Start it with `--replSet rs0`" in refused.stderr
        looked = run("doctor", "--database", url)
    assert looked.exit_code == exit_codes.FAILED
    assert "fail  database      This MongoDB is a single server" in looked.stdout
    assert "-> mongod --replSet rs0" in looked.stdout


def test_a_user_whom_it_does_not_know_is_refused() -> None:
    with empty_database() as url:
        other = url.replace("://", "://nobody:hunter2@")
        refused = run("db", "migrate", "--database", other)
    assert refused.exit_code == exit_codes.FAILED
    assert refused.stderr.startswith("error: The database refuses the user of the URL: Auth")
    assert "hunter2" not in refused.stderr


def test_a_worker_that_is_killed_is_replaced(url: str, project: Path) -> None:
    with serving(project, url, *LEASE) as first:
        told(first.stdout)
        name = submit(url, "Hello", "-i", "name=slow")
        wait_until_started(first)
        first.kill()
    (project / "go").touch()
    with serving(project, url, *LEASE) as second:
        told(second.stdout)
        with Client(url) as client:
            assert client.run(name).result("60s") == {"text": "Hello, slow!"}
        second.terminate()
        assert second.wait(timeout=60) == exit_codes.OK
    assert name in afl(url, "runs", "list", "--filter", "state=completed").stdout


def test_runs_are_read(served: str) -> None:
    ended = afl(served, "submit", "Outer", "-i", "name=Ada", "--timeout", "60s")
    assert json.loads(ended.stdout) == {"text": "Hello, Ada!"}
    name = id_in(afl(served, "runs", "list", "--filter", "workflow=demo.Outer"))
    assert 'said="Hello, Ada!"' in afl(served, "runs", "logs", name).stdout
    assert json.loads(afl(served, "runs", "result", name).stdout) == {"text": "Hello, Ada!"}
    for command in ("get", "tree", "why"):
        assert "completed" in afl(served, "runs", command, name).stdout
    validate(afl(served, "runs", "export", name).stdout, "export")
    tasks = afl(served, "tasks", "list", "--run", name).stdout
    assert "demo.Greet" in tasks
    afl(served, "tasks", "get", id_in(afl(served, "tasks", "list", "--run", name)))


def test_runs_are_done_again(served: str) -> None:
    bad = finished(served, "Hello", "-i", "name=bad")
    again = afl(served, "runs", "retry", bad).stdout.split()[2]
    forked = afl(served, "runs", "fork", bad, "--from", "0/hello", "-i", "name=good")
    waits = submit(served, "Wait", "-i", "key=k")
    afl(served, "runs", "cancel", waits)
    with Client(served) as client:
        assert client.run(again).wait("60s") == "failed"
        assert client.run(id_in(forked)).result("60s") == {"text": "Hello, good!"}
        assert client.run(waits).wait("60s") == "canceled"
    dead = afl(served, "dlq", "list").stdout
    assert dead.count("demo.Greet") == 2
    driven = json.loads(afl(served, "dlq", "redrive", "--all", "--json").stdout)
    assert len(driven["changes"]) == 2


def test_an_event_and_an_answer_let_runs_go_on(served: str) -> None:
    waits = submit(served, "Wait", "-i", "key=k2")
    afl(served, "emit", "answer", "--key", "k2", "--payload", '{"n": 1}')
    asks = submit(served, "Ask", "-i", "title=Lunch")
    eventually(lambda: asks in afl(served, "inbox", "list").stdout, "a question")
    (item,) = json.loads(afl(served, "inbox", "list", "--json").stdout)["items"]
    afl(served, "inbox", "answer", item["task"], "-i", "ok=true", "--by", "ann")
    with Client(served) as client:
        assert client.run(waits).result("60s") == {"answer": {"n": 1}}
        assert client.run(asks).result("60s") == {"ok": True}


def test_schedules(served: str) -> None:
    afl(served, "schedules", "create", "nightly", "Hello", "--cron", "0 3 * * *")
    assert "nightly" in afl(served, "schedules", "list").stdout
    name = id_in(afl(served, "schedules", "trigger", "nightly"))
    with Client(served) as client:
        assert client.run(name).result("60s") == {"text": "Hello, world!"}
    afl(served, "schedules", "pause", "nightly")
    afl(served, "schedules", "delete", "nightly")
    assert afl(served, "schedules", "list").stdout == ""


def test_mail(url: str) -> None:
    afl(url, "mail", "send", "seller", "--id", "offer-1", "-i", "price=80")
    told = json.loads(afl(url, "mail", "peek", "seller", "--json").stdout)
    assert told["messages"][0]["payload"] == {"price": 80}
    afl(url, "mail", "send", "seller", "--id", "late-1", "--ttl", "1ms")
    assert "late-1" in afl(url, "mail", "dlq", "seller").stdout
    assert afl(url, "mail", "redrive", "seller", "--all").stdout == "late-1  ready\n"


def test_a_server_lets_in_who_has_a_token(served: str, tmp_path: Path) -> None:
    made = json.loads(afl(served, "tokens", "create", "ci", "--role", "operator", "--json").stdout)
    afl(served, "hooks", "create", "orders", "demo.Hello")
    assert "orders" in afl(served, "hooks", "list").stdout
    kept = submit(served, "Hello")
    settings = {"AFL_LOG_FORMAT": "json", "AFL_LOG_LEVEL": "info"}
    with (
        started(tmp_path, served, "serve", "--port", "0", **settings) as (first, _),
        httpx.Client(base_url=f"{first['url']}/api/v1", timeout=60) as http,
    ):
        assert httpx.get(f"{first['url']}/readyz").status_code == 200
        assert http.get("/runs").status_code == 401
        http.headers["authorization"] = f"Bearer {made['secret']}"
        runs = http.get("/runs").json()
        assert kept in [each["id"] for each in runs["items"]]
        assert http.get(f"/runs/{kept}").json()["workflow"] == "demo.Hello"
        afl(served, "tokens", "revoke", made["token"]["id"])
        eventually(lambda: http.get("/runs").status_code == 401, "the token is worthless")


def test_old_runs_go_with_all_that_they_left(served: str) -> None:
    name = finished(served, "Hello", "-i", "name=Ada")
    live = submit(served, "Wait", "-i", "key=for-ever")
    told = json.loads(afl(served, "db", "rotate", "--older-than", "1ms", "--json").stdout)
    assert told["removed"] >= 2  # the run and its step, at least
    gone = run("runs", "get", name, "--database", served)
    assert gone.exit_code == exit_codes.UNREADABLE
    assert f"no run {name}" in gone.stderr
    assert "running" in afl(served, "runs", "get", live).stdout
    assert afl(served, "db", "rotate", "--older-than", "1ms").stderr.startswith("nothing to do")
    afl(served, "runs", "cancel", live)
