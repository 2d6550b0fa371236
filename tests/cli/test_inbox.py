"""`afl inbox`."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from afl import Client
from afl.cli import exit_codes
from tests.cli.deployed import deployed_database, submit, worker
from tests.cli.runner import run
from tests.cli.test_json_shapes import validate
from tests.kernel.postgres.databases import server_is_there

pytestmark = pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")

UNKNOWN = "00000000-0000-7000-8000-000000000000"
FLOW = """\
namespace demo {
  event facet Greet(name: String) => (text: String)
  event facet Fetch(name: String) => (n: Int)
  event facet Store(n: Int, text: String) => (done: Boolean)

  enum Size { small, large }

  /**
   * Asks which desk.
   *
   * @return count how many
   */
  event facet Desk(for_whom: String) => (size: Size, count: Int, note: String?, tags: [String] = [])
    with Human(group = "office", deadline = 3d)

  workflow Order(name: String) => (size: Size, count: Int, note: String?) andThen {
    desk = Desk(for_whom = $.name)
    yield Order(size = desk.size, count = desk.count, note = desk.note)
  }
}
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with deployed_database(FLOW) as url, worker(url):
        yield url


@pytest.fixture
def asked(url: str) -> tuple[str, str]:
    """A run that waits for a person, and the task."""
    name = submit(url, "Order", "-i", "name=Ada")
    with Client(url) as client:
        while True:
            for item in client.inbox().list("office"):
                if item.run == name:
                    return name, item.task


def outputs(url: str, name: str) -> dict[str, object]:
    with Client(url) as client:
        return dict(client.run(name).result("20s"))


def test_what_waits_is_listed(url: str, asked: tuple[str, str]) -> None:
    name, task = asked
    result = run("inbox", "list", "--group", "office", "--database", url)
    header, *rows = (line.split() for line in result.stdout.splitlines())
    assert header == ["TASK", "GROUP", "TITLE", "RUN", "STEP", "AGE", "LEFT"]
    (row,) = (row for row in rows if row[0] == task)
    assert row[1:5] == ["office", "Asks", "which", "desk."]
    assert row[5:7] == [name, "0/desk"]
    assert row[8] == "2d"
    assert "help: `afl inbox show " in result.stderr
    listed = run("inbox", "list", "--json", "--limit", "1", "--database", url)
    validate(listed.stdout, "inbox")
    none = run("inbox", "list", "--group", "nobody", "--database", url)
    assert (none.stdout, none.stderr) == ("", "nothing waits for a person\n")


def test_one_is_shown_with_its_form(url: str, asked: tuple[str, str]) -> None:
    _, task = asked
    result = run("inbox", "show", task, "--database", url)
    assert "title     Asks which desk.\n" in result.stdout
    assert "then      The step fails with the error type `Timeout`" in result.stdout
    assert "  for_whom = Ada\n" in result.stdout
    assert (
        "answer\n  size: small or large\n  count: integer: how many\n"
        "  note: null or string (may be left out)\n  tags: array (else [])\n" in result.stdout
    )
    assert f"`afl inbox answer {task} -i size=... -i count=...`" in result.stderr
    validate(run("inbox", "show", task, "--json", "--database", url).stdout, "inbox")


def test_an_answer_lets_the_run_go_on(url: str, asked: tuple[str, str]) -> None:
    name, task = asked
    args = ("-i", "size=small", "-i", "count=2", "-i", "note=5 legs", "--by", "grace")
    result = run("inbox", "answer", task, *args, "--database", url)
    assert result.exit_code == exit_codes.OK, result.stderr
    assert f"`afl runs watch {name}`" in result.stderr
    assert outputs(url, name) == {"size": "small", "count": 2, "note": "5 legs"}
    again = run("inbox", "answer", task, *args, "--database", url)
    assert again.exit_code == exit_codes.FAILED
    assert "It was already answered by grace." in again.stderr


def test_an_answer_can_be_a_file(url: str, asked: tuple[str, str]) -> None:
    name, task = asked
    text = json.dumps({"size": "large", "count": 1})
    args = ("inbox", "answer", task, "--inputs", "-", "-i", "count=3", "--json", "--database", url)
    result = run(*args, input=text)
    validate(result.stdout, "changes")
    assert json.loads(result.stdout)["changes"][0]["state"] == "answered"
    assert outputs(url, name) == {"size": "large", "count": 3, "note": None}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["-i", "size=huge", "-i", "count=1"], "`size`: a member of `Size`"),
        (["-i", "size=small"], "`count`"),
        (["-i", "size=small", "-i", "count=two"], "the field `count` is integer"),
        (["-i", "size=small", "-i", "count=1", "-i", "colour=1"], "`colour`"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(
    url: str, asked: tuple[str, str], args: list[str], said: str
) -> None:
    result = run("inbox", "answer", asked[1], *args, "--database", url)
    assert result.exit_code == exit_codes.USAGE
    assert said in result.stderr


def test_a_rejection_fails_the_run_with_its_reason(url: str, asked: tuple[str, str]) -> None:
    name, task = asked
    result = run("inbox", "reject", task, "--reason", "no space", "--json", "--database", url)
    validate(result.stdout, "changes")
    with Client(url) as client:
        assert client.run(name).wait("20s") == "failed"
        error = client.run(name).get().error
    assert error is not None
    assert (error["type"], error["message"]) == ("Rejected", "no space")


def test_what_is_not_there(url: str) -> None:
    for verb in ("show", "answer", "reject"):
        result = run("inbox", verb, UNKNOWN, "--database", url)
        assert result.exit_code == exit_codes.UNREADABLE
        assert "`afl inbox list` shows what waits" in result.stderr
