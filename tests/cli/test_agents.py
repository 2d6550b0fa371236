"""`afl agents`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import Result

from afl import Client
from afl.app.services import connect
from afl.bridges.turn_stores import turn_store
from afl.cli import exit_codes
from afl.kernel.model import CallSpec, Commit, Suspend, TaskId, TaskSpec, WorkerId, WorkerSpec
from afl.turns import cards
from afl.turns.journal import ToolCall
from tests.cli.at_work import FLOW, at_work
from tests.cli.deployed import deployed_database, id_in
from tests.cli.runner import run
from tests.cli.test_json_shapes import validate
from tests.kernel.postgres.databases import server_is_there

pytestmark = pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with deployed_database(FLOW) as url, at_work(url, tmp_path_factory.mktemp("model")):
        yield url


@pytest.fixture
def idle_url() -> Iterator[str]:
    """A database without a worker."""
    with deployed_database(FLOW) as url:
        yield url


def agents(url: str, *args: str | Path) -> Result:
    return run("agents", *args, "--database", url)


class TestRoster:
    def test_an_agent_is_made_changed_and_deleted(self, url: str, tmp_path: Path) -> None:
        system = tmp_path / "system.txt"
        system.write_text("You review.\nBe kind.", encoding="utf-8")
        options = ("--tool", "demo.Fetch", "--tag", "review", "--max-tokens", "100")
        made = agents(url, "set", "anna", "--model", "m:1", "--system-file", system, *options)
        assert made.exit_code == exit_codes.OK, made.stderr
        assert "`afl agents send anna TEXT --wait` gives it a turn" in made.stderr
        changed = agents(url, "set", "anna", "--model", "m:2", "--model", "m:3", "--json")
        validate(changed.stdout, "agents")
        (agent,) = json.loads(changed.stdout)["agents"]
        assert (agent["models"], agent["system"]) == (["m:2", "m:3"], "You review.\nBe kind.")
        assert (agent["tools"], agent["tags"], agent["max_tokens"]) == (
            ["demo.Fetch"],
            ["review"],
            100,
        )
        shown = agents(url, "get", "anna")
        assert shown.stdout.splitlines()[:3] == [
            "agent       anna",
            "kind        model",
            "status      idle",
        ]
        assert shown.stdout.endswith("  You review.\n  Be kind.\n")
        gone = agents(url, "delete", "anna", "--json")
        validate(gone.stdout, "changes")
        missing = agents(url, "get", "anna")
        assert missing.exit_code == exit_codes.UNREADABLE
        assert "There is no agent anna. `afl agents list` shows" in missing.stderr

    def test_agents_are_listed_page_by_page(self, url: str) -> None:
        for name in ("list-a", "list-b", "list-c"):
            agents(url, "set", name, "--tenant", "lists", "--system", "x")
        first = agents(url, "list", "--tenant", "lists", "--limit", "2")
        assert [line.split()[:2] for line in first.stdout.splitlines()] == [
            ["AGENT", "STATUS"],
            ["list-a", "idle"],
            ["list-b", "idle"],
        ]
        assert "`--after list-b` shows the next page" in first.stderr
        rest = agents(url, "list", "--tenant", "lists", "--after", "list-b", "--json")
        validate(rest.stdout, "agents")
        assert [each["id"] for each in json.loads(rest.stdout)["agents"]] == ["list-c"]
        none = agents(url, "list", "--tenant", "nobody")
        assert (none.stdout, none.exit_code) == ("", exit_codes.OK)
        assert "there is no agent" in none.stderr

    def test_the_turns_of_a_person_are_left_to_people(self, url: str) -> None:
        made = json.loads(agents(url, "set", "boss", "--person", "--json").stdout)
        assert (made["agents"][0]["kind"], made["agents"][0]["target"]) == ("person", "people")
        agents(url, "set", "clerk", "--model", "m:1")
        turned = json.loads(agents(url, "set", "clerk", "--person", "--json").stdout)
        assert turned["agents"][0]["target"] == "people"
        refused = agents(url, "set", "boss", "--person", "--model", "m:1")
        assert refused.exit_code == exit_codes.USAGE

    def test_a_system_text_comes_from_one_place(self, url: str, tmp_path: Path) -> None:
        both = agents(url, "set", "x", "--system", "a", "--system-file", "b")
        assert both.exit_code == exit_codes.USAGE
        none = agents(url, "set", "x", "--system-file", tmp_path / "none")
        assert none.exit_code == exit_codes.UNREADABLE


class TestTurns:
    def test_what_is_sent_is_delivered(self, url: str) -> None:
        agents(url, "set", "writer", "--system", "You write.")
        result = agents(url, "send", "writer", "Hello {there}", "--wait", "--timeout", "30s")
        assert (result.stdout, result.exit_code) == ("answer to: Hello {there}\n", exit_codes.OK)

    def test_a_result_has_the_shape_that_was_asked_for(self, url: str, tmp_path: Path) -> None:
        agents(url, "set", "counter", "--system", "You count.")
        schema = tmp_path / "returns.json"
        schema.write_text(
            json.dumps(
                {
                    "type": "object",
                    "properties": {"n": {"type": "integer"}},
                    "required": ["n"],
                    "additionalProperties": False,
                }
            ),
            encoding="utf-8",
        )
        result = agents(url, "send", "counter", "count", "--returns", schema, "--wait", "--json")
        validate(result.stdout, "turn")
        told = json.loads(result.stdout)
        assert told["deliverable"] == {
            "ending": "done",
            "partial": False,
            "fields": {"n": 1},
            "message": "",
        }
        again = agents(
            url,
            "send",
            "counter",
            "count",
            "--returns",
            schema,
            "--wait",
            "--context",
            told["turn"],
        )
        assert json.loads(again.stdout) == {"n": 2}

    def test_sending_with_the_same_key_is_one_turn(self, url: str) -> None:
        agents(url, "set", "keyed", "--system", "x")
        first = agents(url, "send", "keyed", "Hi", "--key", "monday", "--wait", "--json")
        again = agents(url, "send", "keyed", "Hi", "--key", "monday", "--wait", "--json")
        assert json.loads(first.stdout) == json.loads(again.stdout)

    def test_turns_are_listed_with_what_they_cost(self, url: str) -> None:
        agents(url, "set", "busy", "--system", "x", "--tool", "demo.Fetch")
        agents(url, "send", "busy", "one", "--wait")
        failed = agents(url, "send", "busy", "fail", "--wait")
        assert failed.exit_code == exit_codes.RUN_FAILED
        assert "this model is not for you" in failed.stderr
        listed = agents(url, "turns", "busy")
        header, newest, oldest = (line.split() for line in listed.stdout.splitlines())
        assert header[:7] == ["TURN", "STATE", "OUTCOME", "AGE", "REQUESTS", "TOKENS", "USD"]
        assert newest[1:3] + newest[4:] == ["closed", "failed", "0", "0", "0.00", "fail"]
        assert oldest[1:3] + oldest[4:] == ["closed", "success", "2", "330", "0.02", "one"]
        assert f"`afl runs transcript {newest[0]}` shows what was said" in listed.stderr
        page = agents(url, "turns", "busy", "--limit", "1", "--json")
        validate(page.stdout, "turns")
        told = json.loads(page.stdout)
        assert (told["turns"][0]["outcome"], told["next"]) == ("failed", newest[0])
        rest = agents(url, "turns", "busy", "--before", told["next"], "--json")
        assert [each["usd"] for each in json.loads(rest.stdout)["turns"]] == ["0.0200000000"]

    def test_a_wait_that_is_too_short_ends_with_5(self, url: str) -> None:
        agents(url, "set", "snail", "--system", "x")
        result = agents(url, "send", "snail", "be slow", "--wait", "--timeout", "200ms")
        assert result.exit_code == exit_codes.NOT_ENDED
        assert "has not ended in time" in result.stderr
        stopped = agents(url, "stop", "snail", "--json")
        validate(stopped.stdout, "changes")
        (change,) = json.loads(stopped.stdout)["changes"]
        with Client(url) as client:
            assert client.agents.wait(change["id"], "20s").ending.value == "stopped"
        idle = agents(url, "stop", "snail")
        assert idle.exit_code == exit_codes.UNREADABLE
        assert "is idle" in idle.stderr

    def test_an_agent_that_is_not_there_takes_no_turn(self, url: str) -> None:
        for args in (("send", "nobody", "x"), ("turns", "nobody"), ("stop", "nobody")):
            result = agents(url, *args)
            assert result.exit_code == exit_codes.UNREADABLE, args
            assert "`afl agents list`" in result.stderr

    def test_a_timeout_without_a_wait_makes_no_sense(self, url: str) -> None:
        assert agents(url, "send", "x", "y", "--timeout", "1s").exit_code == exit_codes.USAGE


class TestHeads:
    def test_a_turn_that_nobody_has_taken_is_dispatched(self, idle_url: str) -> None:
        agents(idle_url, "set", "anna", "--system", "x")
        first = id_in(agents(idle_url, "send", "anna", "one"))
        second = id_in(agents(idle_url, "send", "anna", "two"))
        told = json.loads(agents(idle_url, "get", "anna", "--json").stdout)["agents"][0]["head"]
        assert told == {"status": "dispatched", "turn": first, "waits_for": []}
        states = json.loads(agents(idle_url, "turns", "anna", "--json").stdout)["turns"]
        assert [(each["id"], each["state"]) for each in states] == [
            (second, "queued"),
            (first, "ready"),
        ]
        assert agents(idle_url, "stop", first).exit_code == exit_codes.OK
        told = json.loads(agents(idle_url, "get", "anna", "--json").stdout)["agents"][0]["head"]
        assert told["turn"] == second
        again = agents(idle_url, "stop", first)
        assert "had ended already" in again.stderr

    def test_what_a_turn_waits_for_is_told(self, idle_url: str) -> None:
        agents(idle_url, "set", "anna", "--system", "x")
        turn = id_in(agents(idle_url, "send", "anna", "one"))
        with connect(idle_url) as services:
            kernel = turn_store(services.persistence).kernel
            me = WorkerId("me")
            kernel.register(WorkerSpec(me, "me"))
            claim = kernel.take(me, TaskId(turn))
            assert claim is not None
            assert agents(idle_url, "get", "anna").stdout.splitlines()[2] == "status      running"
            names = {"0.0": "Look", "approve:0.1": "Pay", "busy:0": None}
            made = [
                cards.write(ToolCall(0, at, key, tool, tool, "id"))
                for at, (key, tool) in enumerate(names.items())
                if tool
            ]
            calls = [CallSpec(key, TaskSpec("event", "x"), timedelta(hours=1)) for key in names]
            kernel.commit([Commit(claim.fence, Suspend(), cards=tuple(made), calls=tuple(calls))])
        shown = agents(idle_url, "get", "anna").stdout.splitlines()
        assert shown[2:5] == [
            "status      suspended",
            f"turn        {turn}",
            "waits for   Look, approval of Pay, a model that is busy",
        ]


def test_the_sdk_does_the_same(tmp_path: Path) -> None:
    with Client("memory:agents-sdk") as client:
        client.deploy(FLOW)
        client.agents.set("anna", system="You help.")
        assert [agent.id for agent in client.agents.list()] == ["anna"]
        assert client.agents.head("anna").status == "idle"
        with at_work("memory:agents-sdk", tmp_path):
            turn = client.agents.send("anna", "Say {what}", arguments={"what": "hi"})
            assert client.agents.wait(turn, "20s").fields == {"text": "answer to: Say hi"}
        (summary,) = client.agents.turns("anna")
        assert (summary.id, summary.outcome, summary.requests) == (turn, "success", 1)
        assert client.transcript(turn).system == "You help."
        assert [(each.key, each.requests) for each in client.cost("agent")] == [("anna", 1)]
