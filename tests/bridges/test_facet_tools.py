"""Calls of tools: the policies of facets hold for them too."""

from __future__ import annotations

from datetime import timedelta

import pytest

from afl.bridges.facet_tools import FacetTools
from afl.bridges.offers import agent_tool, facet_tool
from afl.kernel.model import CallSpec, Json
from afl.runtime.calls import PEOPLE
from afl.turns.errors import BadBrief
from afl.turns.model import Agent, AgentId, Tool, ToolKind
from afl.turns.ports import NO_TIMEOUT
from tests.bridges.worlds import World, world


@pytest.fixture
def there() -> World:
    return world()


def call(there: World, facet: str, key: str = "1.0", **arguments: Json) -> CallSpec:
    tool = facet_tool(there.plans.get(there.program), there.program, facet)
    tools = FacetTools(there.turns, there.store, there.plans)
    return tools.call(there.facet_task("shop.Review", diff="x"), tool, arguments, key)


def given(call: CallSpec) -> dict[str, Json]:
    assert isinstance(call.task.input, dict)
    return call.task.input


def test_a_call_is_what_a_step_would_make_with_defaults_filled_in(there: World) -> None:
    made = call(there, "shop.Search", query="cats")
    assert made.key == "1.0"
    assert (made.task.kind, made.task.name, made.task.list) == ("event", "shop.Search", "slow")
    assert given(made)["params"] == {"query": "cats", "limit": 10, "within": None}
    assert (given(made)["run"], given(made)["step"]) == ("r-1", "0/asked#1.0")
    assert (given(made)["facet"], given(made)["program"]) == ("shop.Search", there.program)
    assert made.task.priority == 3


def test_retry_and_timeout_hold(there: World) -> None:
    made = call(there, "shop.Search", query="cats")
    assert made.task.retry.max_failures == 3
    assert made.task.retry.delay == timedelta(seconds=2)
    assert given(made)["attempt_timeout_ms"] == 30_000
    assert made.timeout > timedelta(seconds=120)


def test_without_a_timeout_a_tool_may_take_as_long_as_a_step(there: World) -> None:
    assert call(there, "shop.Guarded", n=1).timeout == NO_TIMEOUT


def test_a_rate_limit_delays_the_second_call(there: World) -> None:
    first = call(there, "shop.Search", query="a")
    second = call(there, "shop.Search", key="1.1", query="b")
    assert first.task.delay == timedelta(0)
    assert second.task.delay == timedelta(minutes=1)
    assert second.timeout == first.timeout + timedelta(minutes=1)


def test_the_same_call_takes_one_slot_however_often_it_is_made(there: World) -> None:
    tool = facet_tool(there.plans.get(there.program), there.program, "shop.Search")
    tools = FacetTools(there.turns, there.store, there.plans)
    task = there.facet_task("shop.Review", diff="x")
    arguments: dict[str, Json] = {"query": "a"}
    first = tools.call(task, tool, arguments, "1.0")
    assert tools.call(task, tool, arguments, "1.0") == first
    assert tools.call(task, tool, arguments, "1.1").task.delay == timedelta(minutes=1)


def test_what_cannot_be_taken_back_is_not_repeated_after_a_crash(there: World) -> None:
    made = call(there, "shop.Pay", cents=5)
    assert made.task.max_crashes == 0
    assert given(made)["effect"] == "irreversible"


def test_concurrency_makes_a_lane(there: World) -> None:
    assert call(there, "shop.Guarded", n=1).task.lane == "shop.Guarded::0"


def test_a_facet_for_a_person_is_in_the_inbox(there: World) -> None:
    made = call(there, "shop.Ask", question="May I?")
    assert (made.task.kind, made.task.list, given(made)["group"]) == ("human", PEOPLE, "bosses")
    assert made.timeout == timedelta(days=2)


def test_a_prompt_facet_is_a_turn_of_its_own(there: World) -> None:
    made = call(there, "shop.Summarize", text="long")
    assert (made.task.kind, made.task.name) == ("turn", "shop.Summarize")
    assert given(made)["params"] == {"text": "long"}


def test_the_budget_of_a_facet_goes_with_its_task(there: World) -> None:
    assert given(call(there, "shop.Review", diff="x"))["budget"] == {"usd": 0.5, "tokens": 9000}


def test_a_tool_of_a_tool_has_a_path_below_it(there: World) -> None:
    tool = facet_tool(there.plans.get(there.program), there.program, "shop.Pay")
    tools = FacetTools(there.turns, there.store, there.plans)
    inner = there.task(facet="shop.Summarize", program=there.program, run="r", step="0/a#1.0")
    made = tools.call(inner, tool, {"cents": 1}, "2.1")
    assert given(made)["step"] == "0/a#1.0#2.1"


def test_the_same_arguments_make_the_same_call(there: World) -> None:
    assert call(there, "shop.Pay", cents=5) == call(there, "shop.Pay", cents=5)


@pytest.mark.parametrize("arguments", [{}, {"cents": "five"}, {"cents": 1, "more": 2}])
def test_arguments_that_do_not_fit_are_refused(there: World, arguments: dict[str, Json]) -> None:
    with pytest.raises(BadBrief, match="`Pay` cannot be called: "):
        call(there, "shop.Pay", "1.0", **arguments)


def test_a_tool_of_an_agent_is_told_apart_by_its_turn(there: World) -> None:
    tool = facet_tool(there.plans.get(there.program), there.program, "shop.Pay")
    task = there.task(agent="a", instruction="x")
    made = FacetTools(there.turns, there.store, there.plans).call(task, tool, {"cents": 1}, "1.0")
    assert (given(made)["run"], given(made)["step"]) == (task.run, f"{task.id}#1.0")
    assert given(made)["program"] == there.program


def test_another_agent_takes_a_turn_in_its_lane(there: World) -> None:
    agent = there.turns.save_agent(Agent(AgentId("bob"), target="gpu", tags=("maths",)))
    tool = agent_tool(agent)
    assert tool.kind is ToolKind.AGENT
    assert "It is known for: maths." in tool.description
    tools = FacetTools(there.turns, there.store, there.plans)
    made = tools.call(there.task(agent="a"), tool, {"instruction": "add {1}"}, "1.0")
    assert (made.task.kind, made.task.name, made.task.lane) == ("turn", "agent:gpu", "bob")
    assert given(made)["instruction"] == "add {1}"
    there.turns.delete_agent(AgentId("bob"))
    with pytest.raises(BadBrief, match="bob is not there any more"):
        tools.call(there.task(agent="a"), tool, {"instruction": "x"}, "1.1")


def test_an_mcp_tool_is_called_through_its_server(there: World) -> None:
    tool = Tool("f", "", {"type": "object"}, ToolKind.MCP, "files/read", pin="h")
    tools = FacetTools(there.turns, there.store, there.plans)
    made = tools.call(there.task(agent="a"), tool, {"path": "x"}, "1.0")
    assert (made.task.kind, made.task.name) == ("mcp", "mcp:files")
