"""The roster of agents, and pins of MCP tools."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from afl.kernel.errors import BadRequest
from afl.turns.model import Agent, AgentId, Limits
from tests.turns.store.kept import Kept

ANNA = Agent(
    AgentId("anna"),
    target="fast",
    system="You help.\nYou are {brief}, \"quoted\" and 'quoted'.",
    models=("anthropic:claude-sonnet-5", "openai:gpt-5"),
    tools=("demo.Pay", "files/read", "agent:bob"),
    tags=("a,b", "{c}"),
    limits=Limits(model_calls=7, repairs=1),
    max_tokens=100,
    temperature=0.25,
)


def test_an_agent_comes_back_as_it_was_saved(kept: Kept) -> None:
    saved = kept.store.save_agent(ANNA)
    assert saved == replace(ANNA, created_at=saved.created_at)
    assert saved.created_at is not None
    assert kept.store.get_agent(ANNA.id) == saved


def test_an_agent_with_nothing_but_an_id_can_be_saved(kept: Kept) -> None:
    saved = kept.store.save_agent(Agent(AgentId("x")))
    assert kept.store.get_agent(AgentId("x")) == saved
    assert saved.models == ()
    assert saved.temperature is None


def test_saving_again_describes_the_same_agent_anew(kept: Kept) -> None:
    first = kept.store.save_agent(ANNA)
    kept.advance(timedelta(days=1))
    again = kept.store.save_agent(replace(ANNA, system="Be short.", tools=()))
    assert again.created_at == first.created_at
    assert kept.store.get_agent(ANNA.id) == again
    assert (again.system, again.tools) == ("Be short.", ())


def test_agents_of_tenants_are_apart(kept: Kept) -> None:
    kept.store.save_agent(ANNA)
    kept.store.save_agent(replace(ANNA, tenant="other", system="Other."))
    found = kept.store.get_agent(ANNA.id, tenant="other")
    assert found is not None
    assert found.system == "Other."
    assert [each.tenant for each in kept.store.list_agents("other")] == ["other"]
    assert kept.store.get_agent(ANNA.id, tenant="none") is None


def test_agents_are_listed_by_id_page_by_page(kept: Kept) -> None:
    names = ["b", "a-1", "B", "a_1", "ä", "c"]
    for name in names:
        kept.store.save_agent(Agent(AgentId(name)))
    found: list[str] = []
    page = kept.store.list_agents(limit=2)
    while page:
        assert len(page) <= 2
        found += [each.id for each in page]
        page = kept.store.list_agents(after=page[-1].id, limit=2)
    assert found == sorted(names)


def test_a_deleted_agent_is_gone(kept: Kept) -> None:
    kept.store.save_agent(ANNA)
    assert kept.store.delete_agent(ANNA.id)
    assert not kept.store.delete_agent(ANNA.id)
    assert kept.store.get_agent(ANNA.id) is None


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (Agent(AgentId("")), "needs an id"),
        (Agent(AgentId("a"), tenant=""), "a tenant"),
        (Agent(AgentId("a"), kind="robot"), "use one of model, person"),
        (Agent(AgentId("a"), max_tokens=0), "1 or more"),
    ],
)
def test_an_impossible_agent_is_refused(kept: Kept, agent: Agent, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        kept.store.save_agent(agent)
    assert kept.store.list_agents() == []


def test_the_last_pin_of_a_tool_counts(kept: Kept) -> None:
    assert kept.store.get_pin("files", "read") is None
    kept.store.set_pin("files", "read", "one")
    kept.store.set_pin("files", "write", "two")
    kept.store.set_pin("files", "read", "three")
    assert kept.store.get_pin("files", "read") == "three"
    assert kept.store.get_pin("files", "write") == "two"
