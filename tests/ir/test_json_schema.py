from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from afl.ir import model, types
from afl.ir.codec import dumps, encode
from afl.ir.json_schema import program_schema, schema_text
from afl.ir.model import Program
from afl.ir.shapes import NODE_NAMES
from tests.architecture.repository import SOURCE
from tests.ir.example import EXAMPLE
from tests.ir.strategies import many, programs

VALIDATOR = Draft202012Validator(program_schema())


def complaints(data: object) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(data)]


def test_the_published_schema_is_the_generated_one() -> None:
    published = (SOURCE / "ir" / "program.schema.json").read_text(encoding="utf-8")
    assert published == schema_text(), (
        "write it anew: python -m afl.ir.json_schema > src/afl/ir/program.schema.json"
    )


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(program_schema())


def test_every_class_of_the_model_is_in_the_schema() -> None:
    classes = {
        name
        for module in (model, types)
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    }
    definitions = program_schema()["$defs"]
    assert isinstance(definitions, dict)
    assert set(definitions) == classes - {"Program"} | {"Type", "Expr", "Statement"}


@many
@given(programs())
def test_every_program_satisfies_the_schema(program: Program) -> None:
    assert complaints(encode(program)) == []


@pytest.mark.parametrize(
    ("place", "name", "value", "complaint"),
    [
        ((), "version", 2, "1 was expected"),
        ((), "hash", "sha256:0", "'sha256:0' does not match"),
        ((), "other", 1, "'other' was unexpected"),
        (("program",), "other", [], "'other' was unexpected"),
        (("program", "facets", 0), "kind", "thing", "'thing' is not one of"),
        (("program", "facets", 0), "catch", None, "None is not of type 'object'"),
        (("program", "facets", 0, "params", 0), "type", {}, "'node' is a required property"),
        (("program", "facets", 0, "params", 0), "type", {"node": "step"}, "'step' is not one of"),
        (("program", "schedules", 0), "every_ms", 2**63, "is greater than the maximum"),
        (("spans", "demo.Main"), "line", "1", "'1' is not of type 'integer'"),
    ],
)
def test_the_schema_refuses(
    place: tuple[str | int, ...], name: str, value: object, complaint: str
) -> None:
    data = json.loads(dumps(EXAMPLE))
    inner: Any = data
    for step in place:
        inner = inner[step]
    inner[name] = value
    assert any(complaint in message for message in complaints(data))


def test_a_complaint_is_about_the_node_that_was_meant() -> None:
    data = json.loads(dumps(EXAMPLE))
    del data["program"]["facets"][0]["params"][0]["type"]["name"]
    assert complaints(data) == ["'name' is a required property"]


def test_deep_nesting_is_no_trap_for_validators() -> None:
    """With `oneOf`, the time would triple with every level."""
    kind: types.Type = types.INT
    for _ in range(20):
        kind = types.ListOf(types.OptionalOf(kind))
    schema = model.Schema("S", (model.Param("x", kind, None),))
    assert complaints(encode(Program((), (schema,), (), ()))) == []


def test_node_names_and_descriptions_are_in_the_schema() -> None:
    definitions: Any = program_schema()["$defs"]
    for cls, node in NODE_NAMES.items():
        assert definitions[cls.__name__]["properties"]["node"] == {"const": node}
    assert definitions["Primitive"]["description"] == types.Primitive.__doc__
    assert not any(
        text.startswith(f"{name}(")
        for name, each in definitions.items()
        if (text := each.get("description", ""))
    )


def test_defaults_are_in_the_schema() -> None:
    definitions: Any = program_schema()["$defs"]
    fields = {field.name: field.default for field in dataclasses.fields(model.Argument)}
    assert definitions["Argument"]["properties"]["origin"]["default"] == fields["origin"]
    assert "origin" not in definitions["Argument"]["required"]
