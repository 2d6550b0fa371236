"""Agents as briefs."""

from __future__ import annotations

import pytest

from afl.bridges.agent_briefs import AgentBriefs
from afl.bridges.briefing import AllBriefs
from afl.bridges.prompt_facets import PromptFacets
from afl.kernel.model import Json
from afl.turns.errors import BadBrief
from afl.turns.model import Agent, AgentId, Limits, ToolKind, UserSays
from afl.turns.ports import Briefing
from afl.turns.transcript import Turn, request
from tests.bridges.worlds import World, world

ADA = AgentId("ada")


@pytest.fixture
def there() -> World:
    return world()


def briefed(there: World, agent: Agent, **given: Json) -> Briefing:
    there.turns.save_agent(agent)
    briefs = AgentBriefs(there.turns, there.store, there.plans, models=("m:default",))
    return briefs.brief(there.task(agent=agent.id, **given))


def test_a_profile_makes_the_brief(there: World) -> None:
    limits = Limits(model_calls=3)
    agent = Agent(
        ADA, system="Use {braces}.", models=("a:b",), limits=limits, max_tokens=7, temperature=0.5
    )
    returns: Json = {"type": "object", "properties": {"x": {"type": "string"}}}
    briefing = briefed(there, agent, instruction="Go {on}.", context=["box"], returns=returns)
    brief = briefing.brief
    assert (brief.models, brief.limits, brief.max_tokens) == (("a:b",), limits, 7)
    assert brief.temperature == 0.5
    assert (briefing.agent, briefing.context, brief.returns) == (ADA, ("box",), returns)
    asked = request(Turn(there.task(), brief, briefing.arguments))
    # braces of people mean themselves
    assert asked.system == "Use {braces}."
    assert asked.messages == (UserSays("Go {on}."),)


def test_an_instruction_with_arguments_is_a_template(there: World) -> None:
    briefing = briefed(
        there, Agent(ADA), instruction="Add {n} to {{}}.", arguments={"n": 3}, context=[]
    )
    assert briefing.brief.models == ("m:default",)
    asked = request(Turn(there.task(), briefing.brief, briefing.arguments))
    assert asked.messages == (UserSays("Add 3 to {}."),)


def test_tools_are_facets_of_deployed_programs_and_agents(there: World) -> None:
    there.turns.save_agent(Agent(AgentId("bob")))
    agent = Agent(ADA, tools=("shop.Search", "Pay", "agent:bob"))
    found = briefed(there, agent, instruction="x").brief.tools
    assert [(tool.kind, tool.target) for tool in found] == [
        (ToolKind.FACET, "shop.Search"),
        (ToolKind.FACET, "shop.Pay"),
        (ToolKind.AGENT, "bob"),
    ]
    assert [tool.name for tool in found] == ["Search", "Pay", "bob"]
    assert found[0].pin == there.program


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("Search", r"can be `other\.Search`, `shop\.Search`\. Write it in full"),
        ("shop.Serch", r"Did you mean `shop\.Search`\?"),
        ("agent:nobody", "There is no agent nobody; `afl agents list`"),
        ("files/read", r"\[mcp\.files\] by AFL_MCP"),
        ("shop.Do", "is no event facet"),
    ],
)
def test_a_tool_that_is_not_there(there: World, tool: str, said: str) -> None:
    with pytest.raises(BadBrief, match=said):
        briefed(there, Agent(ADA, tools=(tool,)), instruction="x")


def test_an_unknown_agent(there: World) -> None:
    briefs = AgentBriefs(there.turns, there.store, there.plans)
    with pytest.raises(BadBrief, match="There is no agent eve"):
        briefs.brief(there.task(agent="eve"))


def test_no_model(there: World) -> None:
    there.turns.save_agent(Agent(ADA))
    briefs = AgentBriefs(there.turns, there.store, there.plans)
    with pytest.raises(BadBrief, match="Give it one, or set AFL_MODEL"):
        briefs.brief(there.task(agent="ada", instruction="x"))


def test_all_briefs_ask_whoever_knows(there: World) -> None:
    there.turns.save_agent(Agent(ADA))
    briefs = AllBriefs(
        PromptFacets(there.store, there.plans, models=("m",)),
        AgentBriefs(there.turns, there.store, there.plans, models=("m",)),
    )
    assert "shop.Summarize" in briefs.names()
    assert briefs.brief(there.task(agent="ada", instruction="x")).agent == ADA
    facet = briefs.brief(there.facet_task("shop.Summarize", text="x"))
    assert (facet.facet, facet.arguments) == ("shop.Summarize", {"text": "x"})
    with pytest.raises(BadBrief, match="neither an agent nor a facet"):
        briefs.brief(there.task(what="?"))
