"""`afl worker` as a process: it serves, tells what it found, and drains when it is told to stop."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

import pytest

from afl import Client
from afl.cli import exit_codes
from tests.chaos.nats_server import PrivateNats, nats_is_installed
from tests.cli.deployed import (
    HANDLERS,
    deployed_database,
    end,
    fresh_database,
    submit,
    write_project,
)
from tests.cli.runner import AFL, plain_environment, process, run
from tests.cli.test_json_shapes import validate
from tests.kernel.postgres.databases import server_is_there

pytestmark = pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")

SLOW = HANDLERS.replace(
    '    print("greeting", name)\n',
    """\
    import pathlib, time
    if name == "slow":
        print("started", flush=True)
        while not pathlib.Path("go").exists():
            time.sleep(0.02)
""",
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with deployed_database() as url:
        yield url


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_project(tmp_path, handlers=SLOW)
    return tmp_path


@contextmanager
def serving(project: Path, url: str, *args: str) -> Iterator[subprocess.Popen[str]]:
    """A worker as a process; killed if the test has not ended it."""
    with subprocess.Popen(
        [AFL, "worker", "--handlers", "handlers", "--json", *args],
        cwd=project,
        env={**plain_environment(), "AFL_DATABASE_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def told(stream: IO[str] | None) -> dict[str, object]:
    """The next line that a worker prints, once it does."""
    assert stream is not None
    line = stream.readline()
    validate(line, "worker")
    return dict(json.loads(line))


def test_it_tells_what_it_serves_and_serves_it(project: Path, url: str) -> None:
    with serving(project, url, "--slots", "3", "--list", "default", "--list", "extra") as running:
        started = told(running.stdout)
        assert started["serves"] == ["demo.Greet", "demo.Fetch", "Store"]
        assert (started["slots"], started["lists"]) == (3, ["default", "extra"])
        assert started["not_served"] == []
        result = run("submit", "Hello", "-i", "name=you", "--timeout", "30s", "--database", url)
        assert json.loads(result.stdout) == {"text": "Hello, you!"}
        listed = run("workers", "list", "--database", url).stdout
        assert str(started["worker"]) in listed
        running.terminate()
        assert told(running.stdout)["event"] == "stopping"
        assert told(running.stdout)["finished"] is True
        assert running.wait(timeout=30) == exit_codes.OK
        assert running.stderr is not None
        assert running.stderr.read() == ""
    assert run("workers", "list", "--database", url).stdout == ""


def test_its_lease_and_what_is_logged(project: Path, url: str) -> None:
    noisy = SLOW.replace(
        "def fetch(name: str) -> int:\n",
        """\
def fetch(name: str, ctx: afl.Context) -> int:
    import logging
    ctx.progress(1, 2, "half way")
    logging.getLogger("mine").debug("looked up")
""",
    )
    (project / "handlers.py").write_text(noisy, encoding="utf-8")
    with serving(project, url, "--lease", "7s", "--log-level", "debug") as running:
        told(running.stdout)
        with Client(url) as client:
            (worker,) = client.operations.persistence.kernel.live_workers()
            assert 0 < (worker.expires_at - worker.seen_at).total_seconds() <= 7
        run("submit", "Hello", "-i", "name=you", "--timeout", "30s", "--database", url)
        running.terminate()
        assert running.wait(timeout=30) == exit_codes.OK
        assert running.stderr is not None
        talk = running.stderr.read()
        assert "INFO afl.handler: " in talk
        assert "half way" in talk
        assert "DEBUG mine: looked up" in talk


def test_a_lease_has_a_least_length(url: str) -> None:
    result = run("worker", "--lease", "10ms", "--database", url)
    assert result.exit_code == exit_codes.USAGE
    assert "1s is the shortest" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_handlers_finish(project: Path, url: str, number: signal.Signals) -> None:
    with serving(project, url) as running:
        told(running.stdout)
        name = submit(url, "Hello", "-i", "name=slow")
        wait_until_started(running)
        running.send_signal(number)
        assert told(running.stdout)["in_flight"] == 1
        (project / "go").touch()
        assert told(running.stdout)["finished"] is True
        assert running.wait(timeout=30) == exit_codes.OK
    with Client(url) as client:
        kernel = client.operations.persistence.kernel
        done = [task.name for task in client.operations.tasks(run=name) if task.outcome is not None]
        assert "demo.Greet" in done
        assert kernel.live_workers() == []
        end(client, name)


def test_a_worker_is_drained_from_afar(project: Path, url: str) -> None:
    with serving(project, url, "--lease", "3s") as running:
        worker = str(told(running.stdout)["worker"])
        name = submit(url, "Hello", "-i", "name=slow")
        wait_until_started(running)
        result = run("workers", "drain", worker, "--json", "--database", url)
        validate(result.stdout, "changes")
        assert [each["state"] for each in json.loads(result.stdout)["changes"]] == ["shutdown"]
        assert told(running.stdout)["event"] == "stopping"
        (project / "go").touch()
        assert told(running.stdout)["finished"] is True
        assert running.wait(timeout=30) == exit_codes.OK
    with Client(url) as client:
        done = [task.name for task in client.operations.tasks(run=name) if task.outcome is not None]
        assert "demo.Greet" in done
        end(client, name)
    result = run("workers", "drain", "nobody", "--database", url)
    assert result.exit_code == exit_codes.FAILED
    assert "There is no worker nobody. `afl workers list` shows" in result.stderr


def test_what_does_not_finish_in_time_is_handed_back(project: Path, url: str) -> None:
    with serving(project, url, "--drain", "100ms") as running:
        told(running.stdout)
        name = submit(url, "Hello", "-i", "name=slow")
        wait_until_started(running)
        running.terminate()
        told(running.stdout)
        assert told(running.stdout)["finished"] is False
        assert running.wait(timeout=30) == exit_codes.OK
    with Client(url) as client:
        states = {task.name: task.state.value for task in client.operations.tasks(run=name)}
        assert states["demo.Greet"] == "ready"
        end(client, name)


def test_a_second_signal_does_not_wait(project: Path, url: str) -> None:
    with serving(project, url) as running:
        told(running.stdout)
        name = submit(url, "Hello", "-i", "name=slow")
        wait_until_started(running)
        running.terminate()
        assert told(running.stdout)["event"] == "stopping"
        running.terminate()
        assert running.wait(timeout=10) == -signal.SIGTERM
    with Client(url) as client:
        end(client, name)


def wait_until_started(running: subprocess.Popen[str]) -> None:
    """What a handler prints is talk, so that data stays data."""
    assert running.stderr is not None
    assert running.stderr.readline() == "started\n"


def test_the_banner_is_talk(project: Path, url: str) -> None:
    with subprocess.Popen(
        [AFL, "worker", "--handlers", "handlers", "--database", url],
        cwd=project,
        env=plain_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stderr is not None
        lines: list[str] = []
        while not lines or not lines[-1].startswith("help: "):
            lines.append(running.stderr.readline())
            assert lines[-1], lines
        running.send_signal(signal.SIGINT)
        try:
            out, err = running.communicate(timeout=30)
        finally:
            running.kill()
    assert lines[0].startswith("worker demo-")
    assert "  serves   demo.Greet, demo.Fetch, Store\n" in lines
    assert "  lists    default, 8 slots\n" in lines
    assert (out, running.returncode) == ("", exit_codes.OK)
    assert "stopped: everything is finished\n" in err


@pytest.mark.skipif(not nats_is_installed(), reason="there is no nats-server to start")
def test_nats_is_a_doorbell(project: Path, url: str, tmp_path: Path) -> None:
    # of its own, since a worker leaves a stream there
    with (
        closing(PrivateNats(tmp_path / "nats")) as nats,
        serving(project, url, "--nats", nats.url) as running,
    ):
        told(running.stdout)
        result = run("submit", "Hello", "--timeout", "30s", "--database", url)
        assert result.exit_code == exit_codes.OK
        running.terminate()
        assert running.wait(timeout=30) == exit_codes.OK


def test_a_handler_that_does_not_fit_is_told_before_it_serves(project: Path, url: str) -> None:
    text = SLOW.replace("def greet(name: str)", "def greet(nam: str)")
    (project / "handlers.py").write_text(text, encoding="utf-8")
    given = {"AFL_DATABASE_URL": url}
    done = process("worker", "--handlers", "handlers", cwd=project, variables=given)
    assert (done.returncode, done.stdout) == (exit_codes.FAILED, b"")
    assert b"did you mean `name`?" in done.stderr


def test_a_database_without_a_program_says_what_to_do(project: Path) -> None:
    with fresh_database() as empty:
        given = {"AFL_DATABASE_URL": empty}
        done = process("worker", "--handlers", "handlers", cwd=project, variables=given)
    assert done.returncode == exit_codes.UNREADABLE
    assert b"No program is deployed as `default`. Deploy one with `afl deploy`." in done.stderr


def test_without_a_database_it_says_what_to_type() -> None:
    done = process("worker")
    assert done.returncode == exit_codes.USAGE
    assert b"help: `export AFL_DATABASE_URL=" in done.stderr
