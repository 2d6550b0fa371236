"""What is not a stored program is refused, with an error that says where and what to do."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afl.base.errors import AflError
from afl.ir import errors
from afl.ir.codec import decode, dumps, encode, loads
from afl.ir.errors import ProgramFormatError, ProgramHashError, ProgramVersionError
from afl.ir.model import Expr, ListExpr, Literal, Param, Program, Schema
from afl.ir.place import MAX_NESTING
from afl.ir.types import INT, JSON, ListOf, Type
from tests.ir.example import EXAMPLE
from tests.ir.strategies import many


def stored() -> dict[str, Any]:
    data = json.loads(dumps(EXAMPLE))
    assert isinstance(data, dict)
    return data


def refused(data: object) -> ProgramFormatError:
    with pytest.raises(ProgramFormatError) as caught:
        decode(data)
    return caught.value


def put(way: str, value: object) -> dict[str, Any]:
    """The example with another value at a place like `program/facets/0`."""
    data = stored()
    *steps, last = (int(step) if step.isdigit() else step for step in way.split("/"))
    inner: Any = data
    for step in steps:
        inner = inner[step]
    inner[last] = value
    return data


STATEMENT = "program/facets/1/clauses/0/body/statements/0"
STATEMENT_PATH = "$.program.facets[1].clauses[0].body.statements[0]"


@pytest.mark.parametrize(
    ("way", "value", "message"),
    [
        ("format", "other", "$.format: a stored program says 'afl-program' here; this is 'other'"),
        ("format", None, "$.format: a stored program says 'afl-program' here; this is null"),
        ("version", 0, "$.version: a version is 1 or more, not 0"),
        ("version", True, "$.version: a version is 1 or more, not true"),
        ("version", "1", "$.version: a version is 1 or more, not '1'"),
        ("version", 1.0, "$.version: a version is 1 or more, not 1.0"),
        ("hash", 7, "$.hash: a string belongs here, not 7"),
        ("program", [], "$.program: an object belongs here, not an array"),
        ("program/facets", {}, "$.program.facets: an array belongs here, not an object"),
        ("program/facets/0", "x", "$.program.facets[0]: an object belongs here, not 'x'"),
        (
            "program/facets/0/kind",
            "thing",
            "$.program.facets[0].kind: 'facet', 'event' or 'workflow' belongs here, not 'thing'",
        ),
        ("program/facets/0/kind", [], "'facet', 'event' or 'workflow' belongs here, not an array"),
        (f"{STATEMENT}/name", 1, f"{STATEMENT_PATH}.name: a string belongs here, not 1"),
        (f"{STATEMENT}/name", None, f"{STATEMENT_PATH}.name: a string belongs here, not null"),
        (f"{STATEMENT}/catch", None, f"{STATEMENT_PATH}.catch: an object belongs here, not null"),
        (f"{STATEMENT}/node", "stap", f"{STATEMENT_PATH}: the node 'stap' cannot stand here; use"),
        (f"{STATEMENT}/node", "literal", "'step', 'yield', 'log' or 'assert'"),
        (f"{STATEMENT}/node", ["step"], "the node an array cannot stand here"),
        (f"{STATEMENT}/extra", 1, f"{STATEMENT_PATH}: 'extra' is not known here; this object may"),
        ("program/schedules/0/every_ms", True, "an integer belongs here, not true"),
        ("program/schedules/0/every_ms", 2.0, "an integer belongs here, not 2.0"),
        ("program/schedules/0/every_ms", 2**63, "an integer must fit into 64 bits"),
        ("program/schedules/0/every_ms", 10**400, "an integer must fit into 64 bits"),
        ("program/schedules/0/args/0/value/value", {}, "belongs here, not an object"),
        (
            "program/schedules/0/args/0/value/value",
            float("inf"),
            "a number must be finite, not inf",
        ),
        ("program/schedules/0/args/0/value/value", "\ud800", "half of a surrogate pair"),
        ("program/enums/0/node", "enum", "$.program.enums[0]: 'node' is not known here"),
        (
            "program/other",
            [],
            "$.program: 'other' is not known here; this object may have 'facets'",
        ),
        ("spans/x", 1, "$.spans.x: an object belongs here, not 1"),
        ("spans/a\ud800", {}, "$.spans['a\\ud800']: a string holds half of a surrogate pair"),
        ("docs/a b", 1, "$.docs['a b']: a string belongs here, not 1"),
        ("docs", "x", "$.docs: an object belongs here, not 'x'"),
        ("other", 1, "$: 'other' is not known here"),
        ("x" * 1000, 1, f"$: '{'x' * 40}…' is not known here"),
    ],
)
def test_a_wrong_value_is_refused(way: str, value: object, message: str) -> None:
    assert message in refused(put(way, value)).message


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("format", "$.format: a stored program says 'afl-program' here; this is missing"),
        ("version", "$: 'version' is missing"),
        ("hash", "$: 'hash' is missing"),
        ("program", "$: 'program' is missing"),
        ("program/facets/0/name", "$.program.facets[0]: 'name' is missing"),
        (f"{STATEMENT}/node", f"{STATEMENT_PATH}: 'node' is missing; it is 'step', 'yield', 'log'"),
    ],
)
def test_a_missing_member_is_refused(way: str, message: str) -> None:
    data = stored()
    *steps, last = (int(step) if step.isdigit() else step for step in way.split("/"))
    inner: Any = data
    for step in steps:
        inner = inner[step]
    del inner[last]
    assert message in refused(data).message


@pytest.mark.parametrize("data", [None, [], "x", 1, True, {}])
def test_what_is_no_program_at_all_is_refused(data: object) -> None:
    assert refused(data).path in ("$", "$.format")


def test_the_error_tells_its_path() -> None:
    assert refused(put(f"{STATEMENT}/name", 1)).path == f"{STATEMENT_PATH}.name"


def test_a_newer_version_is_refused_before_its_content_is_judged() -> None:
    data = {"format": "afl-program", "version": 2, "hash": 1, "program": 1, "novelty": 1}
    error = refused(data)
    assert isinstance(error, ProgramVersionError)
    assert error.message == (
        "$.version: this program has version 2, and this AgentFlow reads up to 1;"
        " upgrade AgentFlow, or compile the source again with this one"
    )


def test_a_changed_program_does_not_fit_its_hash() -> None:
    error = refused(put(f"{STATEMENT}/facet", "demo.Other"))
    assert isinstance(error, ProgramHashError)
    assert "it was changed after it was stored; compile its source again" in error.message


def test_spans_and_docs_may_change_under_a_hash() -> None:
    data = stored()
    del data["spans"], data["docs"]
    assert decode(data) == EXAMPLE


def test_declarations_out_of_order_are_refused() -> None:
    data = stored()
    data["program"]["facets"].reverse()
    assert "[1]: declarations are sorted by name, and 'demo.Greet'" in refused(data).message


def test_a_declaration_that_is_there_twice_is_refused() -> None:
    data = stored()
    data["program"]["enums"] *= 2
    assert refused(data).message == "$.program.enums[1]: 'demo.Mood' is declared twice"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "this is not JSON in UTF-8"),
        ("{", "this is not JSON in UTF-8"),
        (b"\xff", "this is not JSON in UTF-8"),
        ("\ufeff{}", "this is not JSON in UTF-8"),
        ("1" * 5000, "this is not JSON in UTF-8"),
        ('{"format": NaN}', "a number must be finite, not NaN"),
        ("-Infinity", "a number must be finite, not -Infinity"),
        ('{"format": 1, "a": 2, "format": 3}', "an object has the member 'format' twice"),
        ("[" * 100_000, f"this nests deeper than {MAX_NESTING} levels"),
        ('{"a":' * 100_000, f"this nests deeper than {MAX_NESTING} levels"),
    ],
    ids=lambda each: repr(each)[:20],
)
def test_a_wrong_text_is_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(ProgramFormatError) as caught:
        loads(text)
    assert message in caught.value.message


def nested_type(levels: int) -> dict[str, Any]:
    data: dict[str, Any] = {"node": "primitive", "name": "Int"}
    for _ in range(levels):
        data = {"node": "list-of", "of": data}
    return data


def nested_list(levels: int) -> dict[str, Any]:
    data: dict[str, Any] = {"node": "literal", "value": 1}
    for _ in range(levels):
        data = {"node": "list", "items": [data]}
    return data


@pytest.mark.parametrize("levels", [MAX_NESTING, 2_000, 50_000])
def test_deep_nesting_is_refused(levels: int) -> None:
    param = {"name": "x", "type": nested_type(levels)}
    assert "nests deeper than" in refused(put("program/facets/0/params/0", param)).message
    param = {"name": "x", "type": nested_type(0), "default": nested_list(levels)}
    error = refused(put("program/facets/0/params/0", param))
    assert error.message.startswith("$.program.facets[0].params[0].default.items[0].items[0]")


def deep(levels: int) -> Program:
    kind: Type = INT
    value: Expr = Literal(1, INT)
    for _ in range(levels):
        kind = ListOf(kind)
    for _ in range(levels // 2):
        value = ListExpr((value,))
    return Program((), (Schema("S", (Param("x", kind, None), Param("y", JSON, value))),), (), ())


def test_a_program_may_nest_up_to_the_limit() -> None:
    text = dumps(deep(MAX_NESTING - 7))
    assert text.count('"list-of"') == MAX_NESTING - 7
    assert dumps(loads(text)) == text


def test_a_program_that_nests_too_deeply_cannot_be_stored() -> None:
    with pytest.raises(ProgramFormatError, match="move the inner part into a facet or a step"):
        encode(deep(MAX_NESTING))


def test_the_limit_leaves_room_on_the_stack() -> None:
    """Reading takes one frame for each level, so that half of Python's stack stays free."""
    assert sys.getrecursionlimit() / 2 >= MAX_NESTING


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**63, -(2**63) - 1, "\udfff"])
def test_what_json_cannot_hold_cannot_be_stored(value: str | float) -> None:
    schema = Schema("S", (Param("it", JSON, Literal(value, None)),))
    with pytest.raises(ProgramFormatError) as caught:
        encode(Program((), (schema,), (), ()))
    assert caught.value.path == "$.program.schemas[0].fields[0].default.value"


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("step"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@many
@given(st.data())
def test_junk_anywhere_is_read_or_refused_but_never_crashes(data: st.DataObject) -> None:
    whole = stored()
    inner: Any = whole
    while True:
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(inner[key], dict | list) or not inner[key] or data.draw(st.booleans()):
            break
        inner = inner[key]
    inner[key] = data.draw(junk)
    try:
        program = decode(whole)
    except ProgramFormatError as error:
        assert error.path.startswith("$")  # noqa: PT017 - whether it is refused depends on the draw
    else:
        assert program == EXAMPLE


def all_errors() -> list[type[AflError]]:
    found = [value for value in vars(errors).values() if isinstance(value, type)]
    return [value for value in found if issubclass(value, AflError)]


@pytest.mark.parametrize("kind", all_errors())
def test_the_docstring_is_the_default_message(kind: type[AflError]) -> None:
    assert kind().message == kind.__doc__


def test_every_error_has_a_code_of_its_own() -> None:
    assert len({kind.code for kind in all_errors()}) == len(all_errors())
