"""The types of AFL values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Primitive:
    """String, Int, Long, Double, Boolean, Json or Duration."""

    name: str


@dataclass(frozen=True, slots=True)
class ListOf:
    of: Type


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map whose keys are Strings."""

    of: Type


@dataclass(frozen=True, slots=True)
class OptionalOf:
    """A value or null. Never an optional of an optional."""

    of: Type


@dataclass(frozen=True, slots=True)
class SchemaRef:
    name: str


@dataclass(frozen=True, slots=True)
class EnumRef:
    name: str


@dataclass(frozen=True, slots=True)
class FacetRef:
    """A step of that facet, passed as it is."""

    name: str


Type = Primitive | ListOf | MapOf | OptionalOf | SchemaRef | EnumRef | FacetRef

STRING = Primitive("String")
INT = Primitive("Int")
LONG = Primitive("Long")
DOUBLE = Primitive("Double")
BOOLEAN = Primitive("Boolean")
JSON = Primitive("Json")
DURATION = Primitive("Duration")

PRIMITIVES = {type.name: type for type in (STRING, INT, LONG, DOUBLE, BOOLEAN, JSON, DURATION)}


def type_text(type: Type) -> str:
    """A type as a program writes it."""
    match type:
        case ListOf(of):
            return f"[{type_text(of)}]"
        case MapOf(of):
            return f"{{String: {type_text(of)}}}"
        case OptionalOf(of):
            return f"{type_text(of)}?"
        case Primitive(name) | SchemaRef(name) | EnumRef(name) | FacetRef(name):
            return name
