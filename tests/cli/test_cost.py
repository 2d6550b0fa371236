"""`afl cost` and `afl cost budget`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from click.testing import Result

from afl import Client
from afl.cli import exit_codes
from afl.kernel.model import TaskId
from tests.cli.at_work import FLOW, at_work
from tests.cli.deployed import deployed_database, finished, id_in
from tests.cli.runner import run
from tests.cli.test_json_shapes import validate
from tests.kernel.postgres.databases import server_is_there

pytestmark = pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with deployed_database(FLOW) as url, at_work(url, tmp_path_factory.mktemp("model")):
        yield url


@pytest.fixture(scope="module")
def spent(url: str) -> tuple[str, str]:
    """Two runs: the first has cost two requests, the second four."""
    one = finished(url, "demo.Do", "-i", "word=cat")
    return one, finished(url, "demo.Twice", "-i", "word=cat")


def cost(url: str, *args: str) -> Result:
    return run("cost", *args, "--database", url)


def test_runs_are_listed_with_the_most_expensive_first(url: str, spent: tuple[str, str]) -> None:
    one, two = spent
    result = cost(url)
    assert result.exit_code == exit_codes.OK, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["RUN", "REQUESTS", "INPUT", "CACHED", "OUTPUT", "USD"]
    assert [two, "4", "600", "160", "60", "0.04"] in rows
    assert rows.index([two, "4", "600", "160", "60", "0.04"]) < rows.index(
        [one, "2", "300", "80", "30", "0.02"]
    )
    assert "USD in" in result.stderr


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("step", ["0/one", "0/two"]),
        ("facet", ["demo.Explain"]),
        ("agent", [""]),
    ],
)
def test_a_run_is_taken_apart(url: str, spent: tuple[str, str], by: str, keys: list[str]) -> None:
    result = cost(url, "--run", spent[1], "--by", by, "--json")
    validate(result.stdout, "cost")
    told = json.loads(result.stdout)
    assert sorted(row["key"] for row in told["rows"]) == keys
    assert sum(row["requests"] for row in told["rows"]) == 4


def test_only_what_is_recent_counts(url: str, spent: tuple[str, str]) -> None:
    assert json.loads(cost(url, "--since", "7d", "--by", "day", "--json").stdout)["rows"]
    none = cost(url, "--since", "1ms")
    assert (none.stdout, none.stderr) == ("", "no model was asked\n")
    assert cost(url, "--since", "soon").exit_code == exit_codes.USAGE
    assert cost(url, "--by", "planet").exit_code == exit_codes.USAGE


def test_the_cost_of_a_called_run_is_looked_for_where_it_is_counted(
    url: str, spent: tuple[str, str]
) -> None:
    with Client(url) as client:
        kernel = client.operations.persistence.kernel
        call = kernel.find_call(TaskId(client.transcript(spent[0]).turn), "0.0")
        assert call is not None
        result = cost(url, "--run", str(call.callee))
    assert result.exit_code == exit_codes.USAGE
    assert f"`afl cost --run {spent[0]}`" in result.stderr


class TestBudgets:
    def test_a_budget_is_set_changed_and_shown(self, url: str) -> None:
        made = cost(url, "budget", "set", "agent", "anna", "--usd", "2.50", "--tokens", "500")
        assert [line.split() for line in made.stdout.splitlines()] == [
            ["SCOPE", "KEY", "UNIT", "LIMIT", "SPENT", "RESERVED"],
            ["agent", "anna", "usd", "2.50", "0.00", "0.00"],
            ["agent", "anna", "tokens", "500", "0", "0"],
        ]
        changed = cost(
            url, "budget", "set", "agent", "anna", "--tokens", "none", "--tool-calls", "7", "--json"
        )
        validate(changed.stdout, "budgets")
        (told,) = json.loads(changed.stdout)["budgets"]
        assert told["limit"] == {
            "usd": "2.5000000000",
            "tokens": None,
            "model_calls": None,
            "tool_calls": 7,
        }
        shown = cost(url, "budget", "get", "agent", "anna", "--json")
        assert json.loads(shown.stdout)["budgets"] == [told]
        listed = json.loads(cost(url, "budget", "list", "--json").stdout)
        assert told in listed["budgets"]

    def test_what_makes_no_sense_is_refused(self, url: str) -> None:
        assert cost(url, "budget", "get", "run", "none").exit_code == exit_codes.UNREADABLE
        for args in (
            ("set", "agent", "anna"),
            ("set", "planet", "earth", "--usd", "1"),
            ("set", "agent", "anna", "--usd", "-1"),
            ("set", "agent", "anna", "--usd", "much"),
            ("set", "agent", "anna", "--tokens", "1.5"),
        ):
            assert cost(url, "budget", *args).exit_code == exit_codes.USAGE, args

    def test_a_turn_that_waits_for_room_goes_on_when_there_is_some(self, url: str) -> None:
        run("agents", "set", "poor", "--system", "x", "--database", url)
        cost(url, "budget", "set", "agent", "poor", "--usd", "0.005")
        turn = id_in(run("agents", "send", "poor", "Hello", "--database", url))
        with Client(url) as client:
            end = time.monotonic() + 20
            while client.agents.head("poor").waits_for != ("room in a budget",):
                assert time.monotonic() < end, client.agents.head("poor")
                time.sleep(0.05)
        # a worker may be as quick as the command to see that there is room
        set_ = cost(url, "budget", "set", "agent", "poor", "--usd", "1", "--json")
        assert json.loads(set_.stdout)["woken"] in (0, 1)
        with Client(url) as client:
            delivered = client.agents.wait(turn, "20s")
            assert delivered.fields == {"text": "answer to: Hello"}
            budget = client.costs.budget("agent", "poor")
        assert budget is not None
        assert f"{budget.spent.usd:.2f}" == "0.01"


def test_the_sdk_counts_in_memory_too() -> None:
    with Client("memory:costs") as client:
        assert client.cost("model", since="1h") == []
        assert client.costs.budgets() == []
