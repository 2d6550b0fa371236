from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afl.kernel.model import Call, CallStatus, Json
from afl.kernel.requests import MAX_JSON_DEPTH, json_copy
from afl.turns.arguments import as_shown, parse
from afl.turns.journal import ResultStatus, ToolResult
from afl.turns.model import Brief, ToolKind, ToolUse
from afl.turns.tool_use import (
    Accepted,
    answered,
    check,
    cut,
    is_approved,
    labelled,
    needs_approval,
    not_approved,
    shown_name,
)
from tests.kernel.rows import make_call, make_task
from tests.turns.playing import RETURNS, brief, tool

USE = ToolUse("id", "add", '{"n": 1}')


def checked(given: Brief, use: ToolUse, *, alone: bool = True, calls_left: int = 9) -> str:
    """What the model is told; that it may go on is told as nothing."""
    found = check(given, use, alone=alone, calls_left=calls_left)
    return found if isinstance(found, str) else ""


def replied(status: CallStatus, body: Json = None, key: str = "0.0") -> Call:
    return replace(make_call(make_task()), key=key, status=status, reply=body)


# What may be called


def test_a_use_that_keeps_the_rules_is_accepted_with_its_arguments() -> None:
    assert check(brief(tool()), USE, alone=False, calls_left=1) == Accepted(tool(), {"n": 1})


@pytest.mark.parametrize(
    ("use", "told"),
    [
        (ToolUse("", "ad", "{}"), "did you mean `add`?"),
        (ToolUse("", "rm_rf", "{}"), "there is no tool `rm_rf`"),
        (ToolUse("", "x" * 1_000_000, "{}"), "there is no tool"),
        (ToolUse("", "", "{}"), "The tools are: `add`"),
        (ToolUse("", "submit_result", "{}"), "there is no tool `submit_result`"),
        (ToolUse("", "add", "{'n': 1}"), "not JSON"),
        (ToolUse("", "add", '{"n": 1'), "not JSON"),
        (ToolUse("", "add", "[1]"), "not a JSON object"),
        (ToolUse("", "add", '{"n": "one"}'), "`n`"),
        (ToolUse("", "add", "{}"), "'n' is a required property"),
        (ToolUse("", "add", ""), "'n' is a required property"),
        (ToolUse("", "add", '{"n": 1, "m": 2}'), "'m' was unexpected"),
        (ToolUse("", "add", json.dumps({"n": "x" * 1_000_000})), "bytes"),
    ],
)
def test_a_use_that_breaks_the_rules_is_told_how_in_few_words(use: ToolUse, told: str) -> None:
    said = checked(brief(tool()), use)
    assert told in said
    assert len(said) < 1000


def test_a_use_is_not_called_when_no_calls_are_left() -> None:
    assert "answer now" in checked(brief(tool()), USE, calls_left=0)
    said = checked(brief(tool(), returns=RETURNS), USE, calls_left=0)
    assert "call `submit_result` now" in said


def test_a_result_is_handed_in_alone_even_when_no_calls_are_left() -> None:
    use = ToolUse("", "submit_result", '{"title": "A", "score": 1}')
    assert checked(brief(returns=RETURNS), use, calls_left=0) == ""
    assert "alone" in checked(brief(returns=RETURNS), use, alone=False)


def test_patterns_in_the_schema_of_a_server_are_left_to_the_server() -> None:
    schema: dict[str, Json] = {"properties": {"a": {"pattern": "^(x+)+$"}}}
    use = ToolUse("", "add", json.dumps({"a": "x" * 40 + "!"}))
    assert checked(brief(tool(kind=ToolKind.MCP, schema=schema)), use) == ""


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        ({}, False),
        ({"effect": "pure"}, False),
        ({"effect": "irreversible"}, True),
        ({"needs_approval": True}, True),
    ],
)
def test_a_person_has_to_agree_to_what_cannot_be_taken_back(
    given: dict[str, object], needed: bool
) -> None:
    assert needs_approval(tool(**given)) is needed


# Arguments


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": "\\u0000"}',
        '{"a": "\\ud800"}',
        '{"\\u0000": 1}',
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"a": ' + "[" * 190 + "]" * 190 + "}",
        '{"a": ' + "9" * 5000 + "}",
        "\ud800",
        "null",
    ],
)
def test_arguments_that_cannot_be_used_are_named_and_never_raise(text: str) -> None:
    said = parse(text, 1_000_000)
    assert isinstance(said, str)
    assert "the arguments" in said
    assert json.loads(as_shown(text, 1_000_000)).keys() == {"unreadable"}


@given(st.text() | st.recursive(st.floats() | st.text(), st.lists).map(json.dumps))
def test_arguments_that_were_accepted_can_be_stored_in_a_task(text: str) -> None:
    found = parse(f'{{"a": {text}}}', 10_000)
    if isinstance(found, dict):
        around: Json = found
        for _ in range(MAX_JSON_DEPTH // 20):
            around = [around]
        json_copy(around)


def test_nothing_written_is_no_arguments() -> None:
    assert parse("", 10) == {}
    assert as_shown("", 10) == "{}"


def test_arguments_are_measured_in_bytes() -> None:
    assert isinstance(parse('{"é":1}', 7), str)
    assert parse('{"é":1}', 8) == {"é": 1}


# Results


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (CallStatus.OK, "text", "text"),
        (CallStatus.OK, {"b": 1, "a": "é"}, '{"a": "é", "b": 1}'),
        (CallStatus.OK, None, "null"),
        (CallStatus.ERROR, {"code": "c", "message": "m"}, "the tool failed: m (c)"),
        (CallStatus.ERROR, {"odd": 1}, 'the tool failed: {"odd": 1}'),
        (CallStatus.ERROR, "plain", "the tool failed: plain"),
        (CallStatus.ERROR, None, "the tool failed"),
        (CallStatus.CANCELED, {"message": "why"}, "the call was canceled: why"),
        (CallStatus.CANCELED, None, "the call was canceled"),
    ],
)
def test_the_model_is_told_what_a_tool_answered(status: CallStatus, body: Json, told: str) -> None:
    result = answered(0, 0, USE, tool(), replied(status, body), 1000)
    assert result.content == told
    assert result.status.value == status.value
    assert not result.untrusted


def test_an_answer_that_is_too_long_is_cut_with_a_mark() -> None:
    result = answered(0, 0, USE, tool(), replied(CallStatus.OK, "é" * 1000), 101)
    assert result.content.startswith("é" * 50 + "\n[cut: the first 100 of 2000 bytes]")


@given(st.text(), st.integers(0, 50))
def test_a_cut_text_is_a_beginning_of_the_text(text: str, most: int) -> None:
    kept = cut(text, most)
    if kept != text:
        whole = kept.rpartition("\n[cut: ")[0]
        assert text.encode(errors="replace").decode().startswith(whole)
        assert len(whole.encode()) <= most


def test_answers_from_outside_are_marked() -> None:
    outside = answered(0, 0, USE, tool(untrusted=True), replied(CallStatus.OK, "x"), 9)
    assert outside.untrusted
    assert labelled(outside) != "x"
    unknown = answered(0, 0, USE, None, replied(CallStatus.OK, "x"), 9)
    assert unknown.untrusted


@given(st.text(), st.text())
def test_no_text_from_outside_ends_its_own_label(before: str, after: str) -> None:
    first = ToolResult(0, 0, "0.0", "t", "", ResultStatus.OK, before, untrusted=True)
    end = labelled(first).rsplit("\n", 1)[1]
    second = replace(first, content=f"{before}\n{end}\n{after}")
    assert labelled(second).count(labelled(second).rsplit("\n", 1)[1]) == 1


@pytest.mark.parametrize(
    ("status", "body", "agreed"),
    [
        (CallStatus.OK, {"approved": True}, True),
        (CallStatus.OK, {"approved": False}, False),
        (CallStatus.OK, {"approved": 1}, False),
        (CallStatus.OK, {}, False),
        (CallStatus.OK, None, False),
        (CallStatus.ERROR, {"approved": True}, False),
        (CallStatus.TIMEOUT, {"approved": True}, False),
    ],
)
def test_only_a_clear_yes_is_a_yes(status: CallStatus, body: Json, agreed: bool) -> None:
    assert is_approved(replied(status, body)) is agreed


def test_a_refusal_comes_with_the_reason_of_the_person() -> None:
    call = replied(CallStatus.OK, {"approved": False, "reason": "too dear"}, "approve:0.0")
    result = not_approved(0, 0, USE, call)
    assert (result.status, result.key) == (ResultStatus.REFUSED, "approve:0.0")
    assert result.content == "a person did not agree to this call: too dear"
    late = not_approved(0, 0, USE, replied(CallStatus.TIMEOUT))
    assert late.status is ResultStatus.TIMEOUT


def test_names_are_shown_as_providers_take_them() -> None:
    assert shown_name("ns.Tool/x") == "ns_Tool_x"
    assert shown_name("") == "_"
    assert len(shown_name("x" * 999)) == 64
