"""`afl tasks`, `afl dlq` and `afl workers`."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from afl.cli import exit_codes
from tests.cli.deployed import deployed_database, finished, fresh_database, worker
from tests.cli.runner import run
from tests.cli.test_json_shapes import validate
from tests.kernel.postgres.databases import server_is_there

pytestmark = pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")

UNKNOWN = "00000000-0000-7000-8000-000000000000"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with deployed_database() as url, worker(url):
        yield url


@pytest.fixture(scope="module")
def empty() -> Iterator[str]:
    with fresh_database() as url:
        yield url


@pytest.fixture(scope="module")
def bad(url: str) -> str:
    return finished(url, "Hello", "-i", "name=bad")


def test_the_tasks_of_a_run(url: str, bad: str) -> None:
    result = run("tasks", "list", "--run", bad, "--database", url)
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["TASK", "STATE", "NAME", "STEP", "AGE"]
    assert [line[1:4] for line in lines[1:]] == [
        ["failed", "afl:execute", "-"],
        ["success", "demo.Fetch", "0/zero"],
        ["failed", "demo.Greet", "0/hello"],
    ]


def test_tasks_by_state_and_outcome(url: str, bad: str) -> None:
    failed = run("tasks", "list", "--run", bad, "--outcome", "failed", "--json", "--database", url)
    validate(failed.stdout, "tasks")
    names = [task["name"] for task in json.loads(failed.stdout)["tasks"]]
    assert names == ["afl:execute", "demo.Greet"]
    none = run("tasks", "list", "--run", bad, "--state", "ready", "--database", url)
    assert (none.stdout, none.stderr) == ("", "there is no such task\n")


def test_pages_of_tasks(url: str, bad: str) -> None:
    args = ("tasks", "list", "--run", bad, "--limit", "1", "--json", "--database", url)
    first = json.loads(run(*args).stdout)
    second = json.loads(run(*args, "--after", first["next"]).stdout)
    assert [task["name"] for task in second["tasks"]] == ["demo.Fetch"]


def test_one_task(url: str, bad: str) -> None:
    result = run("tasks", "get", bad, "--database", url)
    assert "name            afl:execute\n" in result.stdout
    assert "outcome         failed\n" in result.stdout
    assert f"`afl runs why {bad}`" in result.stderr
    validate(run("tasks", "get", bad, "--json", "--database", url).stdout, "tasks")
    unknown = run("tasks", "get", UNKNOWN, "--database", url)
    assert unknown.exit_code == exit_codes.UNREADABLE
    assert "help: `afl tasks list` shows the tasks there are" in unknown.stderr


def test_dead_letters_are_listed_and_driven_again(url: str, bad: str) -> None:
    result = run("dlq", "list", "--database", url)
    assert "ValueError: there is no such name" in result.stdout
    letters = json.loads(run("dlq", "list", "--json", "--database", url).stdout)["tasks"]
    greet = next(task["id"] for task in letters if task["name"] == "demo.Greet")
    dry = run("dlq", "redrive", "--name", "Greet", "--dry-run", "--database", url)
    assert greet in dry.stdout
    assert "would be driven again" in dry.stderr
    again = run("dlq", "redrive", greet, "--database", url)
    assert again.exit_code == exit_codes.OK
    made = again.stdout.split()[2]
    assert again.stderr == f"1 task driven again\nhelp: `afl tasks get {made}` shows how it fares\n"
    gone = json.loads(run("dlq", "list", "--json", "--database", url).stdout)["tasks"]
    assert greet not in [task["id"] for task in gone]


def test_dead_letters_in_json(url: str, bad: str) -> None:
    finished(url, "Hello", "-i", "name=bad")
    listed = run("dlq", "list", "--json", "--database", url)
    validate(listed.stdout, "tasks")
    result = run("dlq", "redrive", "--all", "--json", "--database", url)
    validate(result.stdout, "changes")
    assert json.loads(result.stdout)["changes"]


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ([], exit_codes.USAGE, "name the tasks, or use --name or --all"),
        (["x", "--all"], exit_codes.USAGE, "name the tasks, or use --name or --all"),
        ([UNKNOWN], exit_codes.FAILED, f"There is no task {UNKNOWN}. `afl dlq list` shows"),
    ],
)
def test_what_cannot_be_driven_again(url: str, args: list[str], code: int, said: str) -> None:
    result = run("dlq", "redrive", *args, "--database", url)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr


def test_workers(url: str) -> None:
    result = run("workers", "list", "--database", url)
    header, row = (line.split() for line in result.stdout.splitlines())
    assert header == ["WORKER", "STATE", "SLOTS", "LISTS", "UP", "SERVES"]
    assert row[0].startswith("demo-")
    assert (row[1], row[2], row[3]) == ("running", "8", "default")
    assert row[5] == "demo.Greet,demo.Fetch,Store"
    listed = run("workers", "list", "--json", "--database", url)
    validate(listed.stdout, "workers")
    assert "afl:execute" in json.loads(listed.stdout)["workers"][0]["handlers"]


def test_nothing_there(empty: str) -> None:
    assert run("dlq", "list", "--database", empty).stderr == "there are no dead letters\n"
    workers = run("workers", "list", "--database", empty)
    assert (workers.stdout, workers.exit_code) == ("", exit_codes.OK)
    assert "help: `afl worker --handlers MODULE` starts one" in workers.stderr
