"""Prompt facets as briefs, and facets as tools."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from afl.app.compiling import compile_program
from afl.bridges.prompt_facets import PromptFacets
from afl.runtime import calls
from afl.turns import model
from afl.turns.errors import BadBrief
from afl.turns.model import Allowance, Brief, Tool, ToolKind
from afl.turns.ports import NO_TIMEOUT
from afl.turns.transcript import Turn, request
from tests.bridges.worlds import World, world

READ = Tool("files__read", "Reads.", {"type": "object"}, ToolKind.MCP, "files/read", untrusted=True)


class Mcp:
    def find(self, server: str, tool: str) -> Tool:
        assert (server, tool) == ("files", "read")
        return READ


@pytest.fixture
def there() -> World:
    return world()


def facets(there: World, **options: object) -> PromptFacets:
    return PromptFacets(there.store, there.plans, mcp=Mcp(), **options)  # type: ignore[arg-type]


def review(there: World) -> Brief:
    briefs = facets(there, models=("m:default",))
    return briefs.brief(there.facet_task("shop.Review", diff="+1", deep=True)).brief


def tools(brief: Brief) -> dict[str, Tool]:
    return {tool.target: tool for tool in brief.tools}


def test_the_names_of_queues_are_those_of_turns() -> None:
    assert (calls.TIMERS, calls.PEOPLE, calls.BUDGETS) == (
        model.TIMERS,
        model.PEOPLE,
        model.BUDGETS,
    )
    assert calls.NO_TIMEOUT == NO_TIMEOUT


class TestNames:
    def test_they_are_the_prompt_facets_for_which_there_is_a_model(self, there: World) -> None:
        assert facets(there).names() == ("shop.Review", "shop.Sleeper")
        assert facets(there, models=("m",)).names() == (
            "shop.Review",
            "shop.Sleeper",
            "shop.Summarize",
        )

    def test_facets_of_programs_that_are_not_deployed_are_among_them_after_the_others(
        self, there: World
    ) -> None:
        old = (
            'namespace old { event facet Say(x: String) => (y: String) prompt { template "{x}" } }'
        )
        there.plans.add(compile_program(old))
        assert facets(there, models=("m",)).names()[-1] == "old.Say"

    def test_a_program_is_read_once(self, there: World) -> None:
        briefs = facets(there)
        briefs.names()
        there.plans.get = lambda program: pytest.fail("it was read again")  # type: ignore[method-assign]
        assert briefs.names()


class TestBrief:
    def test_it_has_the_texts_the_models_and_the_arguments(self, there: World) -> None:
        briefing = facets(there, models=("m:default",)).brief(
            there.facet_task("shop.Review", diff="+1", deep=True)
        )
        brief = briefing.brief
        assert brief.models == ("anthropic:claude-sonnet-5",)
        assert (briefing.facet, briefing.step, briefing.agent) == ("shop.Review", "0/asked", None)
        asked = request(Turn(there.task(), brief, briefing.arguments))
        assert asked.system == "You review +1."
        assert asked.messages[0] == model.UserSays("Review +1, deep: true. Braces: {}")

    def test_the_default_models_are_for_prompts_that_name_none(self, there: World) -> None:
        briefs = facets(there, models=("a:b", "c:d"))
        brief = briefs.brief(there.facet_task("shop.Summarize", text="x")).brief
        assert brief.models == ("a:b", "c:d")
        with pytest.raises(BadBrief, match="Write `model` in its prompt, or set AFL_MODEL"):
            facets(there).brief(there.facet_task("shop.Summarize", text="x"))

    def test_its_returns_are_a_schema_with_what_the_comments_say(self, there: World) -> None:
        assert review(there).returns == {
            "description": "Reviews a change.\n\nBe strict.",
            "type": "object",
            "properties": {
                "verdict": {"type": "string", "description": "what comes of it"},
                "comments": {"type": "array", "items": {"$ref": "#/$defs/shop.Comment"}},
            },
            "required": ["verdict", "comments"],
            "additionalProperties": False,
            "$defs": {
                "shop.Comment": {
                    "type": "object",
                    "properties": {
                        "line": {
                            "type": "integer",
                            "minimum": -(2**31),
                            "maximum": 2**31 - 1,
                            "description": "which line",
                        },
                        "text": {"type": "string"},
                        "replies": {
                            "type": "array",
                            "items": {"$ref": "#/$defs/shop.Comment"},
                            "default": [],
                        },
                        "mood": {
                            "anyOf": [
                                {"type": "string", "enum": ["good", "bad"]},
                                {"type": "null"},
                            ]
                        },
                    },
                    "required": ["line", "text"],
                    "additionalProperties": False,
                    "description": "A comment on a line.",
                }
            },
        }

    def test_equal_facets_have_equal_briefs_whatever_their_arguments(self, there: World) -> None:
        briefs = facets(there)
        first = briefs.brief(there.facet_task("shop.Review", diff="1", deep=True))
        second = briefs.brief(there.facet_task("shop.Review", diff="2", deep=False))
        assert first.brief == second.brief

    def test_its_allowance_is_the_budget_in_the_task(self, there: World) -> None:
        task = there.facet_task("shop.Review", diff="1", deep=True)
        assert facets(there).brief(task).brief.allowance == Allowance()
        assert isinstance(task.input, dict)
        budget = replace(task, input={**task.input, "budget": {"usd": 0.5, "tokens": 9000}})
        assert facets(there).brief(budget).brief.allowance == Allowance(Decimal("0.5"), 9000)

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"facet": "shop.None"}, "no facet `shop.None`"),
            ({"facet": "shop.Pay"}, "`shop.Pay` has no prompt"),
            ({"facet": "shop.Sleeper"}, "`afl.time.Sleep` cannot be a tool"),
            ({"facet": "shop.Review", "program": "sha256:0"}, "There is no program"),
        ],
    )
    def test_what_cannot_be_briefed(self, there: World, given: dict[str, str], said: str) -> None:
        task = there.task(**{"program": there.program, **given})
        with pytest.raises(BadBrief, match=said):
            facets(there, models=("m",)).brief(task)

    def test_without_mcp_servers_the_message_says_what_to_set(self, there: World) -> None:
        with pytest.raises(BadBrief, match=r"\[mcp.files\] by AFL_MCP"):
            PromptFacets(there.store, there.plans).brief(there.facet_task("shop.Review"))


class TestTools:
    def test_names_are_short_unless_two_would_be_the_same(self, there: World) -> None:
        names = {target: tool.name for target, tool in tools(review(there)).items()}
        assert names["shop.Pay"] == "Pay"
        assert names["files/read"] == "files__read"
        assert names["shop.Search"].startswith("facet_shop_Search_")
        assert len(set(names.values())) == 6

    def test_a_tool_has_the_schema_of_its_parameters(self, there: World) -> None:
        search = tools(review(there))["shop.Search"]
        assert search.description == (
            "Searches the archive.\nIt answers with:\n- hits: what was found"
        )
        assert search.schema["required"] == ["query"]
        properties = search.schema["properties"]
        assert isinstance(properties, dict)
        assert properties["query"] == {"type": "string", "description": "words to look for"}
        assert isinstance(properties["limit"], dict)
        assert properties["limit"]["default"] == 10
        assert properties["within"] == {
            "anyOf": [
                {"type": "integer", "description": "A duration in milliseconds."},
                {"type": "null"},
            ]
        }
        assert search.timeout == timedelta(seconds=30)
        assert search.pin == there.program

    def test_effects_are_kept_so_that_a_person_is_asked(self, there: World) -> None:
        found = tools(review(there))
        assert found["shop.Pay"].effect == "irreversible"
        assert found["shop.Search"].effect == "keyed"
        # to ask a person needs nobody's approval
        assert found["shop.Ask"].effect == "keyed"
