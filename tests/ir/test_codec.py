from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afl.ir import types
from afl.ir.codec import decode, dumps, encode, loads
from afl.ir.model import Argument, Input, Literal, Param, Program
from afl.ir.place import ROOT
from afl.ir.shapes import NODE_NAMES, semantic_fields, shape_of
from afl.ir.types import DOUBLE, LONG, Type
from afl.ir.values import read, write
from tests.ir.example import EXAMPLE
from tests.ir.strategies import many, programs, values


def same(one: Program, other: Program) -> bool:
    """Equal, with spans and docs, and without 1 == 1.0 == True."""
    tables = (one.spans, one.docs) == (other.spans, other.docs)
    return tables and all(
        repr(getattr(one, name)) == repr(getattr(other, name)) for name in semantic_fields()
    )


def literal(value: str | int | float | bool | None, type_: Type | None = None) -> Program:
    """A program that holds one literal."""
    facet = dataclasses.replace(
        EXAMPLE.facets[0], params=(Param("it", types.JSON, Literal(value, type_)),)
    )
    return Program((facet,), (), (), ())


def read_literal(program: Program) -> object:
    default = program.facets[0].params[0].default
    assert isinstance(default, Literal)
    return default.value


@many
@given(programs())
def test_decode_undoes_encode(program: Program) -> None:
    assert same(program, decode(encode(program)))


@many
@given(programs())
def test_loads_undoes_dumps(program: Program) -> None:
    text = dumps(program)
    assert same(program, loads(text))
    assert same(program, loads(text.encode("utf-8")))
    assert dumps(loads(text)) == text


@pytest.mark.parametrize("kind", NODE_NAMES)
@settings(many, max_examples=20)
@given(data=st.data())
def test_every_node_survives(kind: type, data: st.DataObject) -> None:
    value = data.draw(values(kind))
    again = read(shape_of(kind), write(value, ROOT), ROOT)
    assert (type(again), repr(again)) == (kind, repr(value))


def test_a_program_reads_as_one_would_write_it() -> None:
    data = encode(EXAMPLE)
    assert list(data) == ["format", "version", "program", "hash", "spans", "docs"]
    assert data["program"]["facets"][0] == {  # type: ignore[call-overload, index]
        "name": "demo.Greet",
        "kind": "event",
        "params": [
            {
                "name": "name",
                "type": {"node": "primitive", "name": "String"},
                "default": {
                    "node": "literal",
                    "value": "world",
                    "type": {"node": "primitive", "name": "String"},
                },
            }
        ],
        "returns": [{"name": "text", "type": {"node": "primitive", "name": "String"}}],
    }


def test_the_text_is_canonical() -> None:
    text = dumps(dataclasses.replace(EXAMPLE, docs={"demo.Main": "Grüße 🙂"}))
    assert "Grüße 🙂" in text
    assert text == json.dumps(
        json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )


def test_an_empty_program_says_only_what_it_is() -> None:
    data = encode(Program((), (), (), ()))
    assert set(data) == {"format", "version", "hash", "program"}
    assert data["program"] == {}


def test_only_what_differs_from_the_default_is_written() -> None:
    plain = Argument("a", Input("x", ()))
    mixed = Argument("a", Input("x", ("y",)), "mixin")
    schedule = dataclasses.replace(EXAMPLE.schedules[0], args=(plain, mixed))
    program = Program((), (), (), (schedule,))
    assert json.loads(dumps(program))["program"]["schedules"][0]["args"] == [
        {"name": "a", "value": {"node": "input", "name": "x"}},
        {
            "name": "a",
            "value": {"node": "input", "name": "x", "path": ["y"]},
            "origin": "mixin",
        },
    ]
    assert loads(dumps(program)) == program


def test_defaults_may_be_spelled_out() -> None:
    data = json.loads(dumps(EXAMPLE))
    data["program"]["facets"][0]["clauses"] = []
    data["program"]["schedules"][0]["args"][0]["origin"] = "call"
    assert decode(data) == EXAMPLE


@pytest.mark.parametrize(
    "value",
    [2.0, -0.0, 2, 0.1, 1e300, 5e-324, 2**63 - 1, -(2**63), True, False, None, "", "2", "\0\n"],
    ids=repr,
)
def test_a_literal_keeps_its_value_and_its_type(value: str | float | bool | None) -> None:
    found = read_literal(loads(dumps(literal(value))))
    assert (type(found), repr(found)) == (type(value), repr(value))


def test_a_double_stays_a_double_and_a_long_a_long() -> None:
    assert '"value":2.0' in dumps(literal(2.0, DOUBLE))
    assert '"value":9007199254740993' in dumps(literal(2**53 + 1, LONG))


def test_declarations_are_sorted_by_name() -> None:
    mixed = dataclasses.replace(EXAMPLE, facets=EXAMPLE.facets[::-1])
    assert decode(encode(mixed)) == EXAMPLE
    assert dumps(mixed) == dumps(EXAMPLE)


def test_spans_and_docs_cannot_be_changed_after_reading() -> None:
    program = decode(encode(EXAMPLE))
    with pytest.raises(TypeError):
        program.docs["demo.Main"] = "other"  # type: ignore[index]


def test_every_node_name_is_used_once() -> None:
    assert len(set(NODE_NAMES.values())) == len(NODE_NAMES)


def test_node_names_are_pinned() -> None:
    """They are stored: a name that changes makes every stored program unreadable."""
    assert sorted(NODE_NAMES.values()) == [
        "assert",
        "block",
        "chain",
        "compare",
        "enum-ref",
        "error-value",
        "facet-ref",
        "field",
        "index",
        "input",
        "list",
        "list-of",
        "literal",
        "log",
        "map",
        "map-of",
        "optional-of",
        "postfix",
        "primitive",
        "schema-ref",
        "script",
        "step",
        "step-value",
        "unary",
        "variable",
        "when",
        "yield",
    ]
