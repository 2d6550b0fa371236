"""`afl emit`, with a worker in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from afl.cli import exit_codes
from tests.cli.deployed import deployed_database, submit, worker
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


def test_an_event_lets_a_run_go_on(url: str) -> None:
    name = submit(url, "Wait", "-i", "key=k1")
    given = ("emit", "answer", "--key", "k1", "--payload", '{"yes": 1}', "--id", "e1")
    result = run(*given, "--database", url)
    assert (result.exit_code, result.stdout) == (exit_codes.OK, "")
    assert result.stderr.startswith("emitted `answer`\n")
    ended = run("runs", "result", name, "--timeout", "30s", "--database", url)
    assert json.loads(ended.stdout) == {"answer": {"yes": 1}}
    again = run(*given, "--database", url)
    assert again.exit_code == exit_codes.OK
    assert again.stderr == "nothing to do: the event e1 was emitted before\n"


def test_an_event_may_come_first(url: str) -> None:
    run("emit", "answer", "--key", "k2", "--payload", "2", "--database", url)
    result = run("submit", "Wait", "-i", "key=k2", "--timeout", "30s", "--database", url)
    assert json.loads(result.stdout) == {"answer": 2}


def test_events_in_json(idle: str) -> None:
    for is_new in (True, False):
        result = run("emit", "x", "--id", "j", "--json", "--database", idle)
        validate(result.stdout, "emit")
        assert json.loads(result.stdout)["is_new"] is is_new
        assert result.stderr == ""


def test_a_payload_that_is_not_json(idle: str) -> None:
    result = run("emit", "x", "--payload", "yes", "--database", idle)
    assert result.exit_code == exit_codes.USAGE
    assert "this is not JSON" in result.stderr
    assert "a text needs quotes" in result.stderr
