from __future__ import annotations

from dataclasses import replace

import pytest

from afl.kernel.model import CardSpec, Json, Outcome, State, Task
from afl.kernel.rules import crash_error, orphan_error, task_timeout_error
from afl.turns.cards import write
from afl.turns.deliverable import (
    SUBMIT,
    answer_as_deliverable,
    ended,
    offered_tools,
    plain_text,
    submit_tool,
    text_as_fields,
    unfinished,
)
from afl.turns.journal import Deferred, Thought
from afl.turns.model import Brief, Deliverable, Ending, Reply, ToolKind
from afl.turns.schemas import faults
from tests.kernel.rows import make_task
from tests.turns.playing import PRICE, RETURNS, brief, says, uses

NESTED: dict[str, Json] = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": {"type": "object", "properties": {"line": {"$ref": "#/$defs/Line"}}},
        },
        "kind": {"enum": ["a", "b"]},
    },
    "required": ["items"],
    "additionalProperties": False,
    "$defs": {"Line": {"type": "integer", "minimum": 1}},
}


# Schemas


def test_a_value_that_fits_has_no_faults() -> None:
    assert faults(NESTED, {"items": [{"line": 3}], "kind": "a"}) == []


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"items": [{"line": 1}, {"line": "x"}]}, "`items[1].line`"),
        ({"items": [{"line": 0}]}, "`items[0].line`"),
        ({}, "'items'"),
        ({"items": [], "other": 1}, "'other'"),
        ({"items": [], "kind": "c"}, "`kind`"),
        ({"items": "none"}, "`items`"),
        ([], "object"),
    ],
)
def test_every_fault_names_its_field(value: Json, named: str) -> None:
    (fault,) = faults(NESTED, value)
    assert named in fault


def test_many_faults_are_cut_short_and_so_are_long_ones() -> None:
    many = faults(NESTED, {"items": [{"line": 0}] * 50})
    assert len(many) == 6
    assert many[-1] == "and 45 more"
    (long,) = faults(NESTED, {"items": "x" * 1_000_000})
    assert len(long) < 400


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:9/never-fetched.json"},
        {"$ref": "#/$defs/Missing"},
        {"type": "objekt"},
        {"properties": 3},
        {"pattern": "("},
        {"$ref": "#"},
    ],
)
def test_a_schema_that_cannot_be_used_is_a_fault_and_nothing_is_fetched(
    schema: dict[str, Json],
) -> None:
    (fault,) = faults(schema, "x")
    assert "the schema cannot be used" in fault


def test_regular_expressions_of_others_are_not_run() -> None:
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "^(x+)+$"}},
        "patternProperties": {"^(y+)+$": {}},
        "additionalProperties": False,
    }
    endless: Json = {"a": "x" * 40 + "!", "y" * 40 + "!": 1}
    assert faults(schema, endless, trusted=False) == []
    assert faults(schema, {"a": 1}, trusted=False) == ["`a`: 1 is not of type 'string'"]
    closed: dict[str, Json] = {"type": "object", "additionalProperties": False}
    assert len(faults(closed, {"a": 1}, trusted=False)) == 1


def test_older_dialects_are_read_as_such() -> None:
    schema: dict[str, Json] = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "array",
        "items": [{"type": "string"}],
    }
    assert faults(schema, ["a"]) == []
    assert faults(schema, [1]) == ["`[0]`: 1 is not of type 'string'"]


# What is delivered


def test_the_tool_to_hand_in_has_the_schema_of_the_result() -> None:
    made = submit_tool(RETURNS)
    assert (made.name, made.schema, made.kind) == (SUBMIT, RETURNS, ToolKind.BUILTIN)
    assert offered_tools(brief()) == ()


@pytest.mark.parametrize(
    ("returns", "fields"),
    [
        (None, {"text": "hi"}),
        ({"properties": {"a": {"type": "string"}}}, {"a": "hi"}),
        ({"properties": {"a": {"type": "string", "maxLength": 1}}}, None),
        ({"properties": {"a": {"type": "integer"}}}, None),
        ({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}}, None),
        ({"type": "object"}, None),
    ],
)
def test_a_text_is_the_result_where_it_can_be(
    returns: dict[str, Json] | None, fields: dict[str, Json] | None
) -> None:
    assert text_as_fields(brief(returns=returns), "hi") == fields


@pytest.mark.parametrize(
    ("returns", "answer", "partial", "fields"),
    [
        (RETURNS, {"title": "A", "score": 1}, False, {"title": "A", "score": 1}),
        (RETURNS, {"title": "A"}, True, {"title": "A"}),
        (RETURNS, "A", True, {"text": "A"}),
        (RETURNS, [1], True, {"text": "[1]"}),
        ({"properties": {"a": {"type": "string"}}, "type": "object"}, "hi", False, {"a": "hi"}),
        (None, "hi", False, {"text": "hi"}),
        (None, {"text": "hi"}, False, {"text": "hi"}),
        (None, {"b": 1, "a": 2}, False, {"text": '{"a": 2, "b": 1}'}),
    ],
)
def test_the_answer_of_a_tool_becomes_the_deliverable(
    returns: dict[str, Json] | None, answer: Json, partial: bool, fields: dict[str, Json]
) -> None:
    made = answer_as_deliverable(brief(returns=returns), answer)
    assert (made.ending, made.partial, made.fields) == (Ending.DONE, partial, fields)
    assert bool(made.message) is partial


def test_what_is_known_are_the_fields_that_fitted_and_the_last_text() -> None:
    cards = journal(
        brief(returns=RETURNS),
        says("first"),
        uses((SUBMIT, '{"title": "A", "score": "high", "extra": 1}'), text="second"),
        says(""),
    )
    made = unfinished(brief(returns=RETURNS), cards, Ending.LIMIT, "enough")
    assert made == Deliverable(Ending.LIMIT, True, {"title": "A", "text": "second"}, "enough")


def test_a_text_does_not_pass_for_a_field_of_that_name() -> None:
    returns: dict[str, Json] = {
        "properties": {"text": {"type": "string"}, "n": {"type": "integer"}}
    }
    made = unfinished(brief(returns=returns), journal(brief(), says("chat")), Ending.LIMIT, "")
    assert made.fields == {}


@pytest.mark.parametrize("arguments", ["[1]", "{", "[" * 100_000, '{"title": "\\u0000"}', "1e999"])
def test_what_was_submitted_in_no_readable_form_is_not_known(arguments: str) -> None:
    cards = journal(brief(returns=RETURNS), uses((SUBMIT, arguments)))
    assert unfinished(brief(returns=RETURNS), cards, Ending.LIMIT, "").fields == {}


# Ends that the kernel makes


def journal(to_do: Brief, *replies: Reply) -> list[CardSpec]:
    thoughts = [write(Thought(n, reply, PRICE, "")) for n, reply in enumerate(replies)]
    return [write(to_do), *thoughts]


def closed(outcome: Outcome, error: Json = None, result: Json = None) -> Task:
    return replace(make_task(), state=State.CLOSED, outcome=outcome, error=error, result=result)


ENDS = [
    (closed(Outcome.CANCELED, {"code": "x", "message": "by Ann"}), Ending.STOPPED, "by Ann"),
    (closed(Outcome.CANCELED, "by Ann"), Ending.STOPPED, "by Ann"),
    (closed(Outcome.CANCELED), Ending.STOPPED, "the turn was stopped"),
    (closed(Outcome.CANCELED, orphan_error(make_task().id)), Ending.STOPPED, "is closed"),
    (closed(Outcome.TIMEOUT, task_timeout_error(make_task())), Ending.TIMEOUT, "deadline"),
    (closed(Outcome.FAILED, crash_error(make_task(), 6)), Ending.CRASHED, "6 times"),
    (closed(Outcome.FAILED, {"code": "other", "message": "no"}), Ending.FAILED, "no"),
    (closed(Outcome.FAILED), Ending.FAILED, "the turn failed"),
]


@pytest.mark.parametrize(("task", "ending", "told"), ENDS)
@pytest.mark.parametrize("cards", [[], journal(brief(), says("so far"))])
def test_every_end_that_the_kernel_makes_has_a_typed_deliverable(
    task: Task, ending: Ending, told: str, cards: list[CardSpec]
) -> None:
    made = ended(task, cards)
    assert made.ending is ending
    assert made.partial
    assert told in made.message
    assert made.fields == ({"text": "so far"} if cards else {})


def test_a_turn_that_ended_while_it_waited_says_what_for() -> None:
    waiting = write(Deferred(1, "budget", None, "budget:0", "for room in run r1"))
    made = ended(closed(Outcome.TIMEOUT), [write(brief()), waiting])
    assert made.message.endswith("it was waiting: for room in run r1")


def test_the_deliverable_in_the_journal_is_the_one() -> None:
    there = Deliverable(Ending.LIMIT, True, {"a": 1}, "enough")
    assert ended(closed(Outcome.FAILED), [write(brief()), write(there)]) == there


def test_a_success_without_a_card_is_what_the_row_says() -> None:
    made = ended(closed(Outcome.SUCCESS, result={"a": 1}), [])
    assert made == Deliverable(Ending.DONE, False, {"a": 1})
    assert ended(closed(Outcome.PARTIAL, result="x"), []).fields == {"text": "x"}


def test_plain_text_is_the_text_or_json() -> None:
    assert plain_text("a") == "a"
    assert plain_text({"text": "a"}) == "a"
    assert plain_text({"text": "a", "b": 1}) == '{"b": 1, "text": "a"}'
    assert plain_text(None) == "null"
