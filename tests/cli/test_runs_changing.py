"""`afl runs`: what changes runs, and what makes new ones of them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.testing import Result

from afl import Client
from afl.cli import exit_codes
from tests.cli.deployed import deployed_database, finished, id_in, submit, worker
from tests.cli.runner import run
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


def do(url: str, verb: str, *args: str) -> Result:
    return run("runs", verb, *args, "--database", url)


def state(url: str, name: str) -> str:
    with Client(url) as client:
        return client.run(name).state


def changes(result: Result) -> list[dict[str, str | None]]:
    validate(result.stdout, "changes")
    assert result.stderr == ""
    return list(json.loads(result.stdout)["changes"])


def test_cancel(idle: str) -> None:
    name = submit(idle, "Hello")
    result = do(idle, "cancel", name, "--reason", "No longer wanted.")
    assert result.exit_code == exit_codes.OK
    assert result.stdout == f"{name}  canceled\n"
    assert result.stderr == f"1 run canceled\nhelp: `afl runs rerun {name}` starts it afresh\n"
    told = do(idle, "result", name)
    assert told.exit_code == exit_codes.RUN_CANCELED
    assert "demo.Hello was canceled: No longer wanted." in told.stderr


def test_pause_and_resume(idle: str) -> None:
    name = submit(idle, "Hello")
    paused = do(idle, "pause", name)
    assert paused.stdout == f"{name}  paused\n"
    assert f"help: `afl runs resume {name}` lets it go on" in paused.stderr
    assert state(idle, name) == "paused"
    assert do(idle, "resume", name).exit_code == exit_codes.OK
    assert state(idle, name) == "created"


def test_many_by_filter(idle: str) -> None:
    names = {submit(idle, "Hello", "--label", "batch=1") for _ in range(3)}
    other = submit(idle, "Hello", "--label", "batch=2")
    picked = ("--filter", "label.batch=1")
    dry = do(idle, "cancel", *picked, "--dry-run")
    assert {line.split()[0] for line in dry.stdout.splitlines()} == names
    assert dry.stderr == "3 runs would be canceled\n"
    assert {state(idle, name) for name in names} == {"created"}
    done = changes(do(idle, "cancel", *picked, "--json"))
    assert {change["id"] for change in done} == names
    assert {state(idle, name) for name in names} == {"canceled"}
    assert state(idle, other) == "created"
    assert do(idle, "cancel", *picked).stderr == "0 runs canceled\n"


def test_a_limit_bounds_what_a_filter_finds(idle: str) -> None:
    for _ in range(2):
        submit(idle, "Hello", "--label", "batch=3")
    result = do(idle, "pause", "--filter", "label.batch=3", "--limit", "1")
    assert "1 run paused" in result.stderr


def test_one_that_refuses_does_not_stop_the_others(url: str, idle: str) -> None:
    ended = finished(url, "Hello")
    waits = submit(url, "Wait", "-i", "key=c")
    result = do(url, "cancel", ended, waits)
    assert result.exit_code == exit_codes.FAILED
    assert f"error: Run {ended} has completed already, so it cannot be canceled." in result.stderr
    assert waits in result.stdout
    with Client(url) as client:
        assert client.run(waits).wait("30s") == "canceled"
    (change,) = changes(do(url, "pause", ended, "--json"))
    assert "has completed already" in str(change["error"])


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "there is no run to do this to"),
        (["x", "--filter", "state=failed"], "name the runs or use --filter, not both"),
        (["--filter", "stat=failed"], "did you mean `state`?"),
    ],
)
@pytest.mark.parametrize("verb", ["cancel", "retry"])
def test_what_it_is_done_to_has_to_be_said(
    idle: str, verb: str, args: list[str], said: str
) -> None:
    result = do(idle, verb, *args)
    assert (result.exit_code, result.stdout) == (exit_codes.USAGE, "")
    assert said in result.stderr


def test_retry_makes_a_run_that_takes_over_what_is_done(url: str) -> None:
    bad = finished(url, "Hello", "-i", "name=bad")
    result = do(url, "retry", bad)
    old, word, new = result.stdout.split()
    assert (old, word) == (bad, "created")
    assert result.stderr == (
        f"1 run started again\nhelp: `afl runs watch {new}` shows how it goes on\n"
    )
    with Client(url) as client:
        assert client.run(new).wait("30s") == "failed"
    assert f"✓ zero demo.Fetch done from {bad}" in do(url, "tree", new).stdout


def test_retry_needs_a_failure(url: str) -> None:
    good = finished(url, "Hello")
    result = do(url, "retry", good)
    assert result.exit_code == exit_codes.FAILED
    assert "error: " in result.stderr
    wrong = do(url, "retry", good, "--step", "0/hello")
    assert wrong.exit_code == exit_codes.FAILED
    usage = do(url, "retry", "a", "b", "--step", "0/hello")
    assert usage.exit_code == exit_codes.USAGE
    assert "--step needs exactly one RUN." in usage.stderr


def test_rerun_starts_afresh(url: str) -> None:
    good = finished(url, "Hello", "-i", "name=again", "--label", "kept=yes")
    (change,) = changes(do(url, "rerun", good, "--json"))
    assert change["made"] not in (None, good)
    with Client(url) as client:
        made = client.run(str(change["made"]))
        assert made.result("30s") == {"text": "Hello, again!"}
        assert made.get().labels == {"kept": "yes"}


def test_fork_with_other_inputs(url: str) -> None:
    bad = finished(url, "Hello", "-i", "name=bad")
    made = do(url, "fork", bad, "--from", "0/hello", "-i", "name=good")
    assert made.exit_code == exit_codes.OK
    assert f"help: `afl runs watch {id_in(made)}`" in made.stderr
    with Client(url) as client:
        assert client.run(id_in(made)).result("30s") == {"text": "Hello, good!"}
    whole = do(url, "fork", bad, "-i", "name=all", "--json")
    validate(whole.stdout, "run")
    with Client(url) as client:
        assert client.run(id_in(whole)).result("30s") == {"text": "Hello, all!"}


def test_a_fork_that_makes_no_sense(url: str) -> None:
    bad = finished(url, "Hello", "-i", "name=bad")
    unknown = do(url, "fork", bad, "--from", "0/nothing")
    assert unknown.exit_code == exit_codes.UNREADABLE
    assert f"`afl runs tree {bad}` shows its steps" in unknown.stderr
    wrong = do(url, "fork", bad, "-i", "nam=x")
    assert wrong.exit_code == exit_codes.USAGE
    assert "did you mean `--input name=...`?" in wrong.stderr
