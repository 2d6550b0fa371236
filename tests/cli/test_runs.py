"""`afl runs`: what shows runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from afl.cli import exit_codes
from tests.cli.deployed import deployed_database, finished, submit, worker
from tests.cli.runner import process, run
from tests.cli.test_json_shapes import validate
from tests.kernel.postgres.databases import server_is_there

pytestmark = pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")

UNKNOWN = "00000000-0000-7000-8000-000000000000"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with deployed_database() as url, worker(url):
        yield url


@pytest.fixture(scope="module")
def good(url: str) -> str:
    return finished(url, "Hello", "--label", "team=a")


@pytest.fixture(scope="module")
def bad(url: str) -> str:
    return finished(url, "Hello", "-i", "name=bad")


@pytest.fixture(scope="module")
def waiting(url: str) -> str:
    return submit(url, "Wait", "-i", "key=never")


def ids(url: str, *args: str) -> list[str]:
    result = run("runs", "list", *args, "--json", "--database", url)
    validate(result.stdout, "runs")
    return [each["id"] for each in json.loads(result.stdout)["runs"]]


def test_a_list_has_columns(url: str, good: str, bad: str) -> None:
    result = run("runs", "list", "--database", url)
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["RUN", "STATE", "WORKFLOW", "AGE", "PARENT"]
    assert {tuple(line[:3]) for line in lines[1:]} >= {
        (good, "completed", "demo.Hello"),
        (bad, "failed", "demo.Hello"),
    }


def test_filters(url: str, good: str, bad: str, waiting: str) -> None:
    assert ids(url, "--state", "failed") == [bad]
    assert ids(url, "--filter", "state=failed") == [bad]
    assert ids(url, "--filter", "label.team=a") == [good]
    assert ids(url, "--filter", "workflow=demo.Wait") == [waiting]
    assert ids(url, "--filter", "older=1h") == []
    assert {good, bad} <= set(ids(url, "--filter", "newer=1h"))


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--filter", "sate=failed"], "did you mean `state`?"),
        (["--filter", "state=faild"], "did you mean `failed`?"),
        (["--state", "zzz"], "the states are created, running, paused"),
        (["--filter", "older=old"], "--filter older: 'old' is not a duration"),
        (["--filter", "state"], "NAME=VALUE"),
        (["--limit", "0"], "Invalid value for '--limit'"),
    ],
)
def test_wrong_filters(url: str, args: list[str], said: str) -> None:
    result = run("runs", "list", *args, "--database", url)
    assert (result.exit_code, result.stdout) == (exit_codes.USAGE, "")
    assert said in result.stderr


def test_pages(url: str, good: str, bad: str, waiting: str) -> None:
    everything = ids(url)
    first = run("runs", "list", "--limit", "1", "--database", url)
    assert f"`--before {everything[0]}` shows the next page" in first.stderr
    assert ids(url, "--limit", "1", "--before", everything[0]) == everything[1:2]


def test_a_list_of_nothing_says_so(url: str) -> None:
    result = run("runs", "list", "--filter", "label.none=1", "--database", url)
    assert (result.stdout, result.stderr) == ("", "there is no such run\n")


def test_get(url: str, good: str, bad: str) -> None:
    result = run("runs", "get", good, "--database", url)
    assert f"run       {good}\n" in result.stdout
    assert "state     completed\n" in result.stdout
    assert 'outputs   {"text": "Hello, world!"}\n' in result.stdout
    assert "labels    team=a\n" in result.stdout
    assert result.stderr == f"help: `afl runs result {good}` prints its outputs\n"
    failed = run("runs", "get", bad, "--database", url)
    assert "why       The run failed at `0/hello`: ValueError" in failed.stdout
    assert f"help: `afl runs retry {bad}` does again what failed" in failed.stderr


def test_tree(url: str, bad: str) -> None:
    result = run("runs", "tree", bad, "--database", url)
    assert result.stdout == (
        "demo.Hello failed\n"
        "  ✓ zero demo.Fetch done  0/zero\n"
        "  ✗ hello demo.Greet failed ValueError: there is no such name  0/hello\n"
    )
    coloured = run("runs", "tree", bad, "--color", "always", "--database", url)
    assert "done  \x1b[2m0/zero\x1b[0m\n" in coloured.stdout


def test_a_tree_shows_iterations_that_are_not_done(url: str) -> None:
    done = finished(url, "Total", "-i", 'names=["a", "b", "c"]')
    result = run("runs", "tree", done, "--database", url)
    assert "  ✓ foreach done (3 done)  1\n" in result.stdout
    assert "[0]" not in result.stdout
    page = run("runs", "tree", done, "--limit", "2", "--database", url)
    assert "shows the next page" in page.stderr


def test_why(url: str, waiting: str, bad: str) -> None:
    result = run("runs", "why", waiting, "--database", url)
    assert "answer" in result.stdout
    assert "help: `afl emit answer --key never`" in result.stderr
    step = run("runs", "why", bad, "0/hello", "--database", url)
    assert step.stdout == "`0/hello` failed: ValueError: there is no such name\n"
    unknown = run("runs", "why", bad, "0/helo", "--database", url)
    assert unknown.exit_code == exit_codes.UNREADABLE
    assert "did you mean `0/hello`? `afl runs tree" in unknown.stderr


def test_result(url: str, good: str, bad: str, waiting: str) -> None:
    assert json.loads(run("runs", "result", good, "--database", url).stdout) == {
        "text": "Hello, world!"
    }
    failed = run("runs", "result", bad, "--database", url)
    assert (failed.exit_code, failed.stdout) == (exit_codes.RUN_FAILED, "")
    assert "error: demo.Hello failed at step 0/hello" in failed.stderr
    open_ = run("runs", "result", waiting, "--database", url)
    assert (open_.exit_code, open_.stdout) == (exit_codes.NOT_ENDED, "")
    assert f"Run {waiting} has not ended in time." in open_.stderr


def test_watch(url: str, good: str, waiting: str) -> None:
    result = run("runs", "watch", good, "--database", url)
    assert json.loads(result.stdout) == {"text": "Hello, world!"}
    assert result.stderr == "✓ zero demo.Fetch done\n✓ hello demo.Greet done\n"
    cut = run("runs", "watch", waiting, "--timeout", "100ms", "--database", url)
    assert cut.exit_code == exit_codes.NOT_ENDED
    assert f"`afl runs why {waiting}`" in cut.stderr


def test_export(url: str, bad: str, tmp_path: Path) -> None:
    result = run("runs", "export", bad, "--database", url)
    validate(result.stdout, "export")
    bundle = json.loads(result.stdout)
    assert bundle["run"]["id"] == bad
    assert {step["path"] for step in bundle["steps"]} >= {"", "0/zero", "0/hello"}
    told = run("runs", "export", bad, "-o", tmp_path / "run.json", "--database", url)
    assert (told.stdout, told.stderr) == ("", f"wrote run {bad} to {tmp_path}/run.json\n")
    assert json.loads((tmp_path / "run.json").read_text(encoding="utf-8")) == bundle


@pytest.fixture(scope="module")
def outer(url: str) -> str:
    return finished(url, "Outer", "-i", "name=you")


def test_runs_that_another_has_called_are_marked_and_can_be_left_out(url: str, outer: str) -> None:
    (child,) = ids(url, "--filter", f"parent={outer}")
    listed = run("runs", "list", "--database", url).stdout.splitlines()
    parents = {line.split()[0]: line.split()[-1] for line in listed}
    assert (parents[outer], parents[child]) == ("-", outer)
    roots = ids(url, "--roots")
    assert outer in roots
    assert child not in roots


def test_logs(url: str, outer: str, good: str) -> None:
    result = run("runs", "logs", outer, "--database", url)
    path, _, values = result.stdout.partition("  ")
    assert path.startswith("0/")
    assert values == 'said="Hello, you!" to="you"\n'
    data = json.loads(run("runs", "logs", outer, "--json", "--database", url).stdout)
    assert data["lines"] == [{"step": path, "values": {"said": "Hello, you!", "to": "you"}}]
    none = run("runs", "logs", good, "--database", url)
    assert (none.stdout, none.stderr) == ("", "the run has logged nothing\n")


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        ("logs", "logs"),
        ("get", "run"),
        ("tree", "tree"),
        ("watch", "run"),
        ("result", "run"),
        ("why", "why"),
        ("export", "export"),
    ],
)
def test_json_has_its_shape(url: str, good: str, bad: str, verb: str, name: str) -> None:
    for each in (good, bad):
        result = run("runs", verb, each, "--json", "--database", url)
        validate(result.stdout, name)
        assert result.stderr == ""


@pytest.mark.parametrize(
    "verb", ["get", "tree", "watch", "result", "why", "logs", "export", "fork"]
)
def test_a_run_that_is_not_there(url: str, verb: str) -> None:
    result = run("runs", verb, UNKNOWN, "--database", url)
    assert (result.exit_code, result.stdout) == (exit_codes.UNREADABLE, "")
    assert f"error: There is no run {UNKNOWN}. `afl runs list` shows" in result.stderr


def test_a_verb_that_is_not_there_gets_the_nearest() -> None:
    result = run("runs", "lst")
    assert result.exit_code == exit_codes.USAGE
    assert "There is no command 'lst'. Did you mean `afl runs list`?" in result.stderr


def test_help_lists_the_verbs_in_their_order() -> None:
    result = run("runs", "--help")
    listed = [line.split()[0] for line in result.stdout.split("Commands:\n")[1].splitlines()]
    assert " ".join(listed) == (
        "list get tree watch result why logs transcript cancel pause resume retry fork rerun export"
    )


@pytest.mark.parametrize("verb", ["list", "get", "cancel"])
def test_without_a_database_it_says_what_to_type(verb: str) -> None:
    args = [] if verb == "list" else ["x"]
    result = process("runs", verb, *args)
    assert result.returncode == exit_codes.USAGE
    assert b"error: there is no database: use --database or AFL_DATABASE_URL\n" in result.stderr
    assert b"`afl run` needs none" in result.stderr
