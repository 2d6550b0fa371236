"""`afl runs transcript`."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.testing import Result

from afl import Client
from afl.app.services import connect
from afl.app.transcripts import Transcripts
from afl.cli import exit_codes
from afl.turns.model import Ending
from tests.cli.at_work import FLOW, at_work
from tests.cli.deployed import deployed_database, finished, id_in, submit
from tests.cli.runner import run
from tests.cli.test_json_shapes import validate
from tests.kernel.postgres.databases import server_is_there

pytestmark = pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")

UNKNOWN = "00000000-0000-7000-8000-000000000000"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with deployed_database(FLOW) as url, at_work(url, tmp_path_factory.mktemp("model")):
        yield url


@pytest.fixture(scope="module")
def done(url: str) -> str:
    """A run with one turn of two requests."""
    return finished(url, "demo.Do", "-i", "word=cat")


@pytest.fixture(scope="module")
def twice(url: str) -> str:
    """A run with two turns."""
    return finished(url, "demo.Twice", "-i", "word=cat")


def transcript(url: str, *args: str) -> Result:
    return run("runs", "transcript", *args, "--database", url)


def test_a_turn_is_told_from_the_system_text_to_the_deliverable(url: str, done: str) -> None:
    result = transcript(url, done)
    assert result.exit_code == exit_codes.OK, result.stderr
    head, *told = result.stdout.splitlines()
    assert head == "demo.Explain  0/said  success"
    assert [line.split(maxsplit=1)[0] for line in told] == [
        "system",
        "instruction",
        "#0",
        "agent",
        "agent",
        "tool",
        "tool",
        "#1",
        "agent",
        "deliverable",
    ]
    assert told[0].split() == ["system", "You", "explain."]
    assert told[2].endswith("100 (80 cached) in, 20 out  0.01 USD")
    assert told[4].split(maxsplit=1)[1] == 'Fetch({"name":"cat"})'
    assert told[6].split(maxsplit=1)[1] == 'Fetch answers: {"n": 3}'
    assert told[9].endswith("done: answer to: Explain cat.")
    assert "2 requests, 330 tokens, 0.02 USD" in result.stderr


def test_it_has_a_shape_for_programs(url: str, done: str) -> None:
    result = transcript(url, done, "0/said", "--json")
    validate(result.stdout, "transcript")
    told = json.loads(result.stdout)
    assert (told["run"], told["step"], told["outcome"]) == (done, "0/said", "success")
    assert [each["usd"] for each in told["requests"]] == ["0.01", "0.01"]
    assert told["deliverable"]["fields"] == {"text": "answer to: Explain cat."}
    by_turn = transcript(url, done, told["turn"], "--json")
    assert json.loads(by_turn.stdout) == told


def test_a_request_is_made_again_as_it_was(url: str, done: str) -> None:
    first = transcript(url, done, "--request", "0")
    assert first.exit_code == exit_codes.OK, first.stderr
    asked = json.loads(first.stdout)
    assert asked["system"] == "You explain."
    assert asked["messages"] == [{"user": "Explain cat."}]
    assert "by its hash sha256:" in first.stderr
    second = transcript(url, done, "--request", "1", "--json")
    validate(second.stdout, "transcript")
    told = json.loads(second.stdout)
    assert told["is_as_it_was"]
    assert [next(iter(message)) for message in told["request"]["messages"]] == [
        "user",
        "agent",
        "content",
    ]
    none = transcript(url, done, "--request", "2")
    assert none.exit_code == exit_codes.UNREADABLE
    assert "it has 2, counted from 0" in none.stderr


def test_a_run_with_several_turns_lists_them(url: str, twice: str) -> None:
    result = transcript(url, twice)
    rows = [line.split() for line in result.stdout.splitlines()]
    assert [row[1:4] for row in rows] == [
        ["STATE", "NAME", "STEP"],
        ["success", "demo.Explain", "0/one"],
        ["success", "demo.Explain", "0/two"],
    ]
    assert f"`afl runs transcript {twice} 0/one` shows one of them" in result.stderr
    validate(transcript(url, twice, "--json").stdout, "transcript")
    assert transcript(url, twice, "0/two").stdout.startswith("demo.Explain  0/two  success\n")
    many = transcript(url, twice, "--request", "0")
    assert many.exit_code == exit_codes.UNREADABLE
    assert "has 2 turns; name one, such as 0/one, 0/two" in many.stderr


def test_what_is_not_there_is_said(url: str, done: str) -> None:
    quiet = finished(url, "demo.Quiet", "-i", "name=Ada")
    for args, message in (
        ((UNKNOWN,), f"There is no run {UNKNOWN}."),
        ((quiet,), "has had no turn of a model"),
        ((done, "0/none"), "No model was asked for `0/none`"),
    ):
        result = transcript(url, *args)
        assert result.exit_code == exit_codes.UNREADABLE
        assert message in result.stderr


def test_a_failed_turn_shows_why(url: str) -> None:
    failed = submit(url, "demo.Do", "-i", "word=fail")
    with Client(url) as client:
        client.run(failed).wait("30s")
    result = transcript(url, failed)
    assert result.stdout.splitlines()[0] == "demo.Explain  0/said  failed"
    assert "this model is not for you (turns.model_refused)" in result.stdout


def test_what_comes_into_a_context_box_later_is_not_shown(url: str) -> None:
    run("agents", "set", "reader", "--system", "x", "--database", url)
    with connect(url) as services, Client(services=services) as client:
        kernel = services.persistence.kernel
        one = client.agents.send("reader", "first")
        client.agents.wait(one, "20s")
        box = client.agents.send("reader", "second", context=[one])
        client.agents.wait(box, "20s")
        assert len(kernel.read_box(one)) == 3
        told = client.transcript(box)
        assert [(line.who, line.text) for line in told.lines[:3]] == [
            ("context", "answer to: first"),
            ("context", "answer to: first"),
            ("instruction", "second"),
        ]
        assert told.is_as_it_was(0)


def test_a_turn_that_the_kernel_has_ended_has_a_deliverable(url: str) -> None:
    run("agents", "set", "unserved", "--target", "nobody", "--database", url)
    turn = id_in(run("agents", "send", "unserved", "Hello", "--database", url))
    with connect(url) as services:
        transcripts = Transcripts(services)
        waiting = transcripts.get(turn)
        assert (waiting.deliverable, [line.who for line in waiting.lines]) == (
            None,
            ["instruction"],
        )
        run("agents", "stop", turn, "--reason", "enough", "--database", url)
        ended = transcripts.get(turn)
    assert ended.deliverable is not None
    assert ended.deliverable.ending is Ending.STOPPED
    assert ended.lines[-1].who == "deliverable"


def test_what_steers_a_terminal_is_not_passed_on(url: str) -> None:
    run("agents", "set", "rude", "--system", "x", "--database", url)
    turn = id_in(run("agents", "send", "rude", "a\x1b[31mb", "--wait", "--json", "--database", url))
    shown = transcript(url, turn).stdout
    assert "\x1b" not in shown
    assert "a\N{REPLACEMENT CHARACTER}[31mb" in shown
