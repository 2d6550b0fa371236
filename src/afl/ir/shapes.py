"""What the classes of the model look like in JSON, read off their type hints.

A class that is one of several in some field carries a `node` name, everywhere. A field is left out
when it holds what a reader takes it for when absent: its default, None or the empty tuple.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin, get_type_hints

from afl.ir import model, types

#: The member of an object that says what it is.
NODE = "node"

#: The names are part of the stored form: they stay when a class is renamed.
NODE_NAMES: Mapping[type, str] = {
    # Types
    types.Primitive: "primitive",
    types.ListOf: "list-of",
    types.MapOf: "map-of",
    types.OptionalOf: "optional-of",
    types.SchemaRef: "schema-ref",
    types.EnumRef: "enum-ref",
    types.FacetRef: "facet-ref",
    # Expressions
    model.Literal: "literal",
    model.Input: "input",
    model.Variable: "variable",
    model.StepValue: "step-value",
    model.ErrorValue: "error-value",
    model.ListExpr: "list",
    model.MapExpr: "map",
    model.UnaryExpr: "unary",
    model.ChainExpr: "chain",
    model.CompareExpr: "compare",
    model.PostfixExpr: "postfix",
    # Accessors
    model.FieldOf: "field",
    model.IndexOf: "index",
    # Bodies
    model.Block: "block",
    model.When: "when",
    model.Script: "script",
    # Statements
    model.Step: "step",
    model.Yield: "yield",
    model.Log: "log",
    model.Assert: "assert",
}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A string, number or Boolean of one of these Python types."""

    kinds: frozenset[type]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sequence:
    """An array of items of one shape."""

    item: Shape


@dataclass(frozen=True, slots=True)
class Record:
    """An object that can be of one class only, and has no node name."""

    cls: type


@dataclass(frozen=True, slots=True)
class Nodes:
    """An object whose node name tells its class."""

    members: Mapping[str, type]


Shape = Scalar | Choice | Sequence | Record | Nodes

#: What `Field.absent` is for a field that must be there.
REQUIRED = dataclasses.MISSING


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a class; `absent` is its value when the JSON does not mention it."""

    name: str
    shape: Shape
    absent: object


@cache
def fields_of(cls: type) -> Mapping[str, Field]:
    """The fields of a class of the model, in the order of the class."""
    assert dataclasses.is_dataclass(cls)
    hints = get_type_hints(cls)
    found = {}
    for field in dataclasses.fields(cls):
        assert field.name != NODE, f"{cls.__name__} has a field '{NODE}', which names its class"
        shape, optional = _shape_of(hints[field.name])
        absent: object = REQUIRED
        if field.default is not dataclasses.MISSING:
            absent = field.default
        elif optional:
            absent = None
        elif isinstance(shape, Sequence):
            absent = ()
        found[field.name] = Field(field.name, shape, absent)
    return found


def shape_of(hint: object) -> Shape:
    """The shape of the values of a type."""
    return _shape_of(hint)[0]


def semantic_fields() -> tuple[str, ...]:
    """The parts of a program that make it what it is: all but the spans and docs."""
    return tuple(field.name for field in dataclasses.fields(model.Program) if field.compare)


def declaration_shape(part: str) -> Sequence:
    """The shape of one of those parts."""
    shape = shape_of(get_type_hints(model.Program)[part])
    assert isinstance(shape, Sequence)
    return shape


def _shape_of(hint: object) -> tuple[Shape, bool]:
    """The shape of a type, and whether None belongs to it."""
    origin = get_origin(hint)
    if origin is Literal:
        return Choice(get_args(hint)), False
    if origin is tuple:
        return Sequence(shape_of(get_args(hint)[0])), False
    every = get_args(hint) if origin in (Union, UnionType) else (hint,)
    kinds = [kind for kind in every if kind is not NoneType]
    optional = len(kinds) < len(every)
    if len(kinds) == 1 and not isinstance(kinds[0], type):
        return shape_of(kinds[0]), optional
    return _shape_of_classes(kinds), optional


def _shape_of_classes(kinds: list[type]) -> Shape:
    if all(kind in NODE_NAMES for kind in kinds):
        return Nodes({NODE_NAMES[kind]: kind for kind in kinds})
    if len(kinds) == 1 and dataclasses.is_dataclass(kinds[0]):
        return Record(kinds[0])
    if all(kind in (str, int, float, bool) for kind in kinds):
        return Scalar(frozenset(kinds))
    raise TypeError(f"no JSON form for {kinds}; does a class lack its name in NODE_NAMES?")
