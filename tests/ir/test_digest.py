from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afl.ir import digest
from afl.ir.codec import dumps
from afl.ir.digest import program_hash
from afl.ir.model import Literal, Param, Program, Schema, SourceSpan
from afl.ir.shapes import semantic_fields
from afl.ir.types import JSON
from tests.ir.example import EXAMPLE
from tests.ir.strategies import many, programs


def changes(value: object) -> Iterator[object]:
    """Every value that differs from this one in one leaf, or lacks the last item of one tuple."""
    match value:
        case None:
            return
        case bool():
            yield not value
        case int():
            yield value - 1 if value > 0 else value + 1
        case float():
            yield 0.5 if value != 0.5 else 0.25
        case str():
            yield f"{value}x"
        case tuple():
            if value:
                yield value[:-1]
            for index, item in enumerate(value):
                for other in changes(item):
                    yield (*value[:index], other, *value[index + 1 :])
        case _:
            assert dataclasses.is_dataclass(value)
            assert not isinstance(value, type)
            names = [field.name for field in dataclasses.fields(value) if field.compare]
            for name in names:
                for other in changes(getattr(value, name)):
                    yield dataclasses.replace(value, **{name: other})


def holding(value: str | int | float | bool | None) -> Program:
    schema = Schema("S", (Param("it", JSON, Literal(value, None)),))
    return Program((), (schema,), (), ())


@many
@given(programs(), st.data())
def test_any_change_of_the_program_changes_the_hash(program: Program, data: st.DataObject) -> None:
    others = list(changes(program))
    if others:
        other = data.draw(st.sampled_from(others))
        assert isinstance(other, Program)
        assert program_hash(other) != program_hash(program)


def test_no_two_changes_of_the_example_have_one_hash() -> None:
    every = [EXAMPLE, *changes(EXAMPLE)]
    assert len(every) > 50
    hashes = {program_hash(each) for each in every if isinstance(each, Program)}
    assert len(hashes) == len(every)


@many
@given(programs(), programs())
def test_spans_and_docs_do_not_count(program: Program, other: Program) -> None:
    moved = dataclasses.replace(program, spans=other.spans, docs=other.docs)
    assert program_hash(moved) == program_hash(program)


@many
@given(programs(), st.data())
def test_the_order_of_declarations_does_not_count(program: Program, data: st.DataObject) -> None:
    parts: dict[str, Any] = {
        name: tuple(data.draw(st.permutations(getattr(program, name))))
        for name in semantic_fields()
    }
    mixed = Program(**parts)
    assert program_hash(mixed) == program_hash(program)


def test_the_order_of_everything_else_counts() -> None:
    schema = EXAMPLE.schemas[0]
    turned = dataclasses.replace(schema, fields=schema.fields[::-1])
    other = dataclasses.replace(EXAMPLE, schemas=(turned,))
    assert program_hash(other) != program_hash(EXAMPLE)


def test_values_that_python_takes_for_equal_have_different_hashes() -> None:
    values: list[str | int | float | bool | None] = [1, 1.0, True, "1", 0, 0.0, False, "", None]
    assert len({program_hash(holding(value)) for value in values}) == len(values)


def test_the_version_of_the_form_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = program_hash(EXAMPLE)
    monkeypatch.setattr(digest, "FORMAT_VERSION", 2)
    assert program_hash(EXAMPLE) != before


def test_anyone_can_calculate_the_hash_from_the_stored_form() -> None:
    data = json.loads(dumps(EXAMPLE))
    given = data.pop("hash")
    del data["spans"], data["docs"]
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert given == f"sha256:{hashlib.sha256(text.encode('utf-8')).hexdigest()}"


def test_the_hash_of_a_program_is_pinned() -> None:
    """A stored program must keep its name, so this changes only together with the version."""
    empty = Program((), (), (), (), spans={"x": SourceSpan("x.afl", 1, 1, 1, 2)})
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", program_hash(empty))
    assert (
        program_hash(empty)
        == "sha256:c5b86a47fed31d51f6f1833915e5da294bad4c30e84d9a378a33fa9092f3b63f"
    )
    assert (
        program_hash(EXAMPLE)
        == "sha256:16acc168abeb4b927e695889cd3bd2a15cb951962b84d24b67e23125a59bfca5"
    )
