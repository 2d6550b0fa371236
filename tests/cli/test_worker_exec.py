"""`afl worker --exec` as a process: it runs commands, and none outlives it."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import IO
from uuid import uuid4

import pytest

from afl import Client
from afl.cli import exit_codes
from tests.cli.deployed import deployed_database, end, submit
from tests.cli.runner import AFL, plain_environment, run
from tests.cli.test_json_shapes import validate
from tests.exec.worlds import processes_with
from tests.kernel.postgres.databases import server_is_there

pytestmark = pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")

FLOW = """
namespace jobs {
  workflow Do(script: String) => (stdout: String) andThen {
    done = afl.exec.Shell(script = $.script)
    yield Do(stdout = done.stdout)
  }
}
"""
#: Begins, with processes in and out of its group, and ends when a file is there.
WAITING = """
trap '' TERM
setsid sh -c 'sleep 600; : MARKER' > /dev/null 2>&1 &
echo x >> begun-MARKER
until test -e go; do sleep 0.05; done
echo went
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with deployed_database(FLOW) as url:
        yield url


@contextmanager
def serving(folder: Path, url: str, *args: str) -> Iterator[subprocess.Popen[str]]:
    """A worker as a process; killed if the test has not ended it."""
    with subprocess.Popen(
        [AFL, "worker", "--exec", "--json", "--lease", "3s", "--spool", "spool", *args],
        cwd=folder,
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
    assert stream is not None
    line = stream.readline()
    validate(line, "worker")
    return dict(json.loads(line))


def begin(folder: Path, url: str) -> tuple[str, str]:
    """A run whose command has begun, and the text by which its processes are known."""
    marker = f"marker-{uuid4().hex}"
    name = submit(url, "jobs.Do", "-i", f"script={WAITING.replace('MARKER', marker)}")
    until((folder / f"begun-{marker}").exists)
    until(lambda: len(processes_with(marker)) >= 2)
    return name, marker


def until(condition: object) -> None:
    end = monotonic() + 60
    while not condition():  # type: ignore[operator]
        assert monotonic() < end, "it did not happen"
        sleep(0.02)


def test_it_tells_that_it_runs_commands_and_runs_them(tmp_path: Path, url: str) -> None:
    with serving(tmp_path, url, "--exec-slots", "2") as running:
        started = told(running.stdout)
        serves = started["serves"]
        assert isinstance(serves, list)
        assert {"afl.exec.Command", "afl.exec.Shell", "afl.exec.Uv"} <= set(serves)
        assert (started["exec_slots"], started["not_served"]) == (2, [])
        script = "echo $((40 + 2))"
        result = run(
            "submit", "jobs.Do", "-i", f"script={script}", "--timeout", "60s", "--database", url
        )
        assert json.loads(result.stdout) == {"stdout": "42\n"}


def test_without_being_told_it_runs_none(tmp_path: Path, url: str) -> None:
    with subprocess.Popen(
        [AFL, "worker", "--json", "--spool", "spool"],
        cwd=tmp_path,
        env={**plain_environment(), "AFL_DATABASE_URL": url},
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        started = told(running.stdout)
        assert (started["serves"], started["exec_slots"]) == ([], 0)
        assert started["not_served"] == ["afl.exec.Shell"]
        running.kill()


def test_a_signal_lets_commands_finish(tmp_path: Path, url: str) -> None:
    with serving(tmp_path, url) as running:
        told(running.stdout)
        name, marker = begin(tmp_path, url)
        running.terminate()
        assert told(running.stdout)["in_flight"] == 1
        (tmp_path / "go").touch()
        assert told(running.stdout)["finished"] is True
        assert running.wait(timeout=60) == exit_codes.OK
        assert processes_with(marker) == []
    with Client(url) as client:
        tasks = {task.name: task for task in client.operations.tasks(run=name)}
        outcome = tasks["afl.exec.Shell"].outcome
        assert outcome is not None
        assert outcome.value == "success"
        end(client, name)


def test_what_does_not_finish_in_time_is_killed_and_then_handed_back(
    tmp_path: Path, url: str
) -> None:
    with serving(tmp_path, url, "--drain", "200ms") as running:
        told(running.stdout)
        name, marker = begin(tmp_path, url)
        running.terminate()
        told(running.stdout)
        assert told(running.stdout)["finished"] is False
        assert processes_with(marker) == []
        assert running.wait(timeout=60) == exit_codes.OK
    with Client(url) as client:
        states = {task.name: task.state.value for task in client.operations.tasks(run=name)}
        assert states["afl.exec.Shell"] == "ready"
    # another worker does it again
    (tmp_path / "go").touch()
    with serving(tmp_path, url) as running, Client(url) as client:
        assert client.run(name).result("60s") == {"stdout": "went\n"}


def test_a_second_signal_ends_commands_at_once(tmp_path: Path, url: str) -> None:
    with serving(tmp_path, url) as running:
        told(running.stdout)
        name, marker = begin(tmp_path, url)
        running.terminate()
        assert told(running.stdout)["event"] == "stopping"
        running.terminate()
        assert running.wait(timeout=60) == -signal.SIGTERM
        until(lambda: processes_with(marker) == [])
    with Client(url) as client:
        end(client, name)


def test_when_it_is_killed_so_are_its_commands_and_others_do_them(tmp_path: Path, url: str) -> None:
    with serving(tmp_path, url) as running:
        told(running.stdout)
        name, marker = begin(tmp_path, url)
        running.kill()
        running.wait()
        until(lambda: processes_with(marker) == [])
    (tmp_path / "go").touch()
    with serving(tmp_path, url), Client(url) as client:
        assert client.run(name).result("60s") == {"stdout": "went\n"}


def test_options_that_need_others_are_refused(url: str) -> None:
    for option in (("--exec-slots", "2"), ("--exec-env", "HOME"), ("--artifacts", "kept")):
        result = run("worker", *option, "--database", url)
        assert result.exit_code == exit_codes.USAGE
        assert "are for --exec" in result.stderr


def test_the_sandbox_is_refused_where_it_cannot_be(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run("worker", "--sandbox", "--database", url)
    assert result.exit_code != exit_codes.OK
    assert "install the package `bubblewrap`" in result.stderr
