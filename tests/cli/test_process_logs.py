"""What `afl worker`, `afl serve` and `afl dev` log: JSON lines with the ids of the work they are
about, or lines for people, and never a secret."""

from __future__ import annotations

import getpass
import json
import logging
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from pymongo import MongoClient

from afl import Client
from afl.app.process_logs import ProcessFields, process_formatter
from afl.base.log_fields import current_log_fields, log_fields
from afl.base.settings import LogFormat, Settings
from afl.cli import exit_codes
from tests.cli.deployed import ON_MONGO, deployed_database, submit, write_project
from tests.cli.runner import AFL, plain_environment
from tests.kernel.postgres.databases import server_is_there

needs_server = pytest.mark.skipif(
    not server_is_there(), reason="there is no PostgreSQL to test with"
)

PASSWORD = "hunter2-of-the-database"
TOKEN = 'quo"ted\\s3cret-value'
HANDLERS = """\
import logging
import os

import structlog

import afl

app = afl.App("demo")


@app.handler("demo.Greet")
def greet(name: str, ctx: afl.Context) -> str:
    ctx.log.info("greeting %s", name)
    logging.getLogger("mine").info("signed in with %s", os.environ["SHOP_TOKEN"])
    of = {"all": [1, os.environ["SHOP_TOKEN"]]}
    structlog.get_logger("theirs").warning("counted", amount=3, of=of)
    try:
        raise ValueError(f"not {os.environ['SHOP_TOKEN']}")
    except ValueError:
        logging.getLogger("mine").exception("it went on\\nall the same")
    return f"Hello, {name}!"


@app.handler("demo.Fetch")
async def fetch(name: str) -> int:
    logging.getLogger("mine").info("fetched")
    return len(name)
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with deployed_database() as plain, known_user(plain) as user:
        yield plain.replace("://", f"://{user}:{PASSWORD}@")


@contextmanager
def known_user(url: str) -> Iterator[str]:
    """Somebody who may use a database with the password. PostgreSQL asks nobody here for one."""
    if not ON_MONGO:
        yield getpass.getuser()
        return
    client: MongoClient[dict[str, Any]] = MongoClient(url)
    with client:
        database = client.get_default_database()
        database.command("createUser", "ann", pwd=PASSWORD, roles=["readWrite", "dbAdmin"])
        try:
            yield "ann"
        finally:
            database.command("dropUser", "ann")


@contextmanager
def started(
    folder: Path, url: str, *args: str, **variables: str
) -> Iterator[tuple[dict[str, Any], subprocess.Popen[str]]]:
    """A process of ours, and the first line that it prints; what it logs goes to a file."""
    given = {"AFL_DATABASE_URL": url, "SHOP_TOKEN": TOKEN, **variables}
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            [AFL, *args],
            cwd=folder,
            env={**plain_environment(), **given},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as running,
    ):
        try:
            assert running.stdout is not None
            line = running.stdout.readline()
            assert line, (folder / "log").read_text()
            yield json.loads(line), running
        finally:
            running.kill()


def ended(running: subprocess.Popen[str], folder: Path) -> str:
    """What a process has logged, when it was told to stop and has done so."""
    running.terminate()
    assert running.wait(timeout=60) == exit_codes.OK
    text = (folder / "log").read_text()
    assert PASSWORD not in text
    assert TOKEN not in text
    assert "s3cret" not in text
    return text


def one(lines: list[dict[str, Any]], event: str) -> dict[str, Any]:
    (found,) = [line for line in lines if line["event"] == event]
    return found


@needs_server
def test_a_worker_binds_what_its_lines_are_about(url: str, tmp_path: Path) -> None:
    write_project(tmp_path, handlers=HANDLERS)
    settings = {"AFL_LOG_FORMAT": "json", "AFL_LOG_LEVEL": "info"}
    with started(tmp_path, url, "worker", "--handlers", "handlers", **settings) as (first, running):
        run = submit(url, "Hello", "-i", "name=you")
        with Client(url) as client:
            assert client.run(run).wait("60s") == "completed"
        lines = [json.loads(line) for line in ended(running, tmp_path).splitlines()]
    assert first["event"] == "started"
    assert all(list(line)[:4] == ["time", "level", "logger", "event"] for line in lines)
    assert all((line["process"], line["worker"]) == ("worker", first["worker"]) for line in lines)
    said = one(lines, "greeting you")
    assert (said["logger"], said["level"]) == ("afl.handler", "info")
    about = {
        "run": run,
        "step": "0/hello",
        "facet": "demo.Greet",
        "attempt": 1,
        "tenant": "default",
        "trace": UUID(run).hex,
    }
    for event in ("greeting you", "signed in with [redacted]", "counted"):
        line = one(lines, event)
        assert {name: line[name] for name in about} == about
        assert UUID(line["task"]) != UUID(run)
    assert one(lines, "fetched")["step"] == "0/zero"
    counted = one(lines, "counted")
    assert (counted["amount"], counted["of"]) == (3, {"all": [1, "[redacted]"]})
    failed = one(lines, "it went on\nall the same")
    assert failed["run"] == run
    assert "ValueError: not [redacted]" in failed["exception"]


@needs_server
def test_a_server_logs_requests_with_the_run_and_who_asks(url: str, tmp_path: Path) -> None:
    settings = {"AFL_LOG_FORMAT": "json", "AFL_LOG_LEVEL": "info"}
    run = submit(url, "Hello")
    with started(tmp_path, url, "serve", "--no-auth", "--port", "0", **settings) as (
        first,
        running,
    ):
        assert httpx.get(f"{first['url']}/api/v1/runs/{run}").status_code == 200
        assert httpx.get(f"{first['url']}/api/v1/links/{TOKEN[-12:]}").status_code == 404
        lines = [json.loads(line) for line in ended(running, tmp_path).splitlines()]
    asked = one(lines, "GET /runs/{run}")
    assert (asked["run"], asked["status"], asked["tenant"]) == (run, 200, "*")
    assert (asked["process"], asked["logger"]) == ("serve", "afl.server.guarding")
    assert one(lines, "GET /links/{token}")["status"] == 404
    # what the library logs comes the same way
    assert any(line["logger"] == "uvicorn.error" for line in lines)


@needs_server
def test_people_get_lines_that_they_can_read(url: str, tmp_path: Path) -> None:
    write_project(tmp_path, handlers=HANDLERS)
    args = ("worker", "--handlers", "handlers", "--json")
    with started(tmp_path, url, *args) as (_, running):
        run = submit(url, "Hello", "-i", "name=you")
        with Client(url) as client:
            client.run(run).wait("60s")
        text = ended(running, tmp_path)
    assert f"INFO afl.handler: [{run} 0/hello] greeting you\n" in text
    assert f"WARNING theirs: counted amount=3 of={{'all': [1, '[redacted]']}} run={run}" in text
    assert "signed in" not in text  # of others only warnings
    assert "\nValueError: not [redacted]\n" in text


def test_a_project_logs_as_the_settings_say(tmp_path: Path) -> None:
    write_project(tmp_path)
    (tmp_path / "flows").mkdir()
    (tmp_path / "flow.afl").rename(tmp_path / "flows" / "flow.afl")
    settings = {"AFL_LOG_FORMAT": "json", "AFL_LOG_LEVEL": "info"}
    args = ("dev", "--memory", "--port", "0", "--no-browser", "--no-demo")
    with started(tmp_path, "", *args, **settings) as (first, running):
        assert httpx.get(f"{first['url']}/api/v1/home").status_code == 200
        lines = [json.loads(line) for line in ended(running, tmp_path).splitlines()]
    assert one(lines, "GET /home")["process"] == "dev"


def test_a_line_says_its_own_before_what_is_bound() -> None:
    fields = ProcessFields("worker")
    fields.add({"worker": "w1"})
    form = process_formatter(Settings(log_format=LogFormat.JSON), fields)
    record = logging.makeLogRecord(
        {"name": "x", "msg": "%s of %d", "args": ("one", 2), "run": "mine", "levelname": "INFO"}
    )
    with log_fields({"run": "theirs", "task": "t"}):
        line = json.loads(form.format(record))
    assert dict(current_log_fields()) == {}
    assert (line["event"], line["run"], line["task"]) == ("one of 2", "mine", "t")
    assert line["worker"] == "w1"


def test_what_cannot_be_json_is_text() -> None:
    form = process_formatter(Settings(log_format=LogFormat.JSON), ProcessFields("serve"))
    given = {"name": "x", "msg": "\ud800 \u2028 line\nbreak", "path": Path("/a"), "b": b"\xff"}
    told = form.format(logging.makeLogRecord(given))
    assert "\n" not in told
    assert json.loads(told)["path"] == "/a"
