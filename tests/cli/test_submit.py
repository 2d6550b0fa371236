"""`afl submit`, with a worker in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from afl import Client
from afl.cli import exit_codes
from tests.cli.deployed import deployed_database, submit, worker
from tests.cli.runner import process, run
from tests.cli.test_json_shapes import validate
from tests.kernel.postgres.databases import server_is_there

pytestmark = pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")


@pytest.fixture(scope="module")
def idle() -> Iterator[str]:
    """A database that no worker serves."""
    with deployed_database() as url:
        yield url


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with deployed_database() as url, worker(url):
        yield url


def test_the_id_is_data_and_the_next_command_is_talk(idle: str) -> None:
    result = run("submit", "Hello", "--input", "name=Ada", "--database", idle)
    assert result.exit_code == exit_codes.OK
    run_id = result.stdout.strip()
    assert result.stderr == f"help: `afl runs watch {run_id}` shows how it goes on\n"
    with Client(idle) as client:
        assert client.run(run_id).get().inputs == {"name": "Ada"}


def test_what_a_run_is_given(idle: str) -> None:
    options = ["--label", "team=a", "--label", "env=b", "--priority", "7", "--deadline", "2h"]
    name = submit(idle, "Hello", *options)
    with Client(idle) as client:
        found = client.run(name).get()
    assert (found.labels, found.priority) == ({"team": "a", "env": "b"}, 7)


def test_a_key_finds_the_same_run(idle: str) -> None:
    args = ("submit", "Hello", "--key", "one", "--database", idle)
    first = run(*args).stdout
    assert run(*args).stdout == first
    refused = run(*args, "--conflict", "reject")
    assert refused.exit_code == exit_codes.FAILED
    assert "The key `one` is taken by run" in refused.stderr
    assert run(*args, "--conflict", "replace").stdout != first


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["Helo"], exit_codes.UNREADABLE, "did you mean `Hello`?"),
        (["Total"], exit_codes.USAGE, "`demo.Total` cannot start"),
        (["Hello", "--program", "other"], exit_codes.UNREADABLE, "Deployed are `default`."),
        (["Hello", "--deadline", "2020-01-01T00:00"], exit_codes.USAGE, "has no zone"),
        (["Hello", "--deadline", "2020-01-01T00:00Z"], exit_codes.USAGE, "has passed already"),
        (["Hello", "--deadline", "soon"], exit_codes.USAGE, "'soon' is not a duration"),
        (["Hello", "--label", "x"], exit_codes.USAGE, "NAME=VALUE"),
    ],
)
def test_what_is_wrong_is_said(idle: str, args: list[str], code: int, said: str) -> None:
    result = run("submit", *args, "--database", idle)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr


def test_waiting_prints_the_outputs(url: str) -> None:
    result = run("submit", "Hello", "--wait", "--database", url)
    assert result.exit_code == exit_codes.OK
    assert json.loads(result.stdout) == {"text": "Hello, world!"}
    assert result.stderr == ""


def test_following_shows_the_steps(url: str) -> None:
    result = run("submit", "Hello", "--follow", "--database", url)
    assert json.loads(result.stdout) == {"text": "Hello, world!"}
    lines = result.stderr.splitlines()
    assert lines[0].startswith("run ")
    assert lines[1:] == ["✓ zero demo.Fetch done", "✓ hello demo.Greet done"]


def test_a_run_that_fails_has_its_exit_code(url: str) -> None:
    result = run("submit", "Hello", "--wait", "-i", "name=bad", "--database", url)
    assert (result.exit_code, result.stdout) == (exit_codes.RUN_FAILED, "")
    assert "demo.Hello failed at step 0/hello: ValueError: there is no such" in result.stderr
    assert " --> flow.afl:8:5\n" in result.stderr
    assert "help: `afl runs retry " in result.stderr


def test_waiting_not_long_enough(idle: str) -> None:
    result = run("submit", "Hello", "--timeout", "50ms", "--database", idle)
    assert (result.exit_code, result.stdout) == (exit_codes.NOT_ENDED, "")
    assert "help: it goes on; `afl runs why " in result.stderr


def test_json_has_its_shape(url: str, idle: str) -> None:
    plain = run("submit", "Hello", "--json", "--database", idle)
    validate(plain.stdout, "run")
    assert json.loads(plain.stdout)["run"]["state"] == "created"
    for name, state in (("you", "completed"), ("bad", "failed")):
        args = ("submit", "Hello", "--wait", "-i", f"name={name}", "--json", "--database", url)
        result = run(*args)
        validate(result.stdout, "run")
        assert json.loads(result.stdout)["run"]["state"] == state
        assert result.stderr == ""


def test_the_database_of_the_settings_is_used(idle: str) -> None:
    done = process("submit", "Hello", variables={"AFL_DATABASE_URL": idle})
    assert done.returncode == exit_codes.OK
    with Client(idle) as client:
        assert client.run(done.stdout.decode().strip()).state == "created"
