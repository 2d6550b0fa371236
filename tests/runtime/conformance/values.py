"""Random values of the types of a program."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from afl.ir import model as ir
from afl.ir.types import (
    EnumRef,
    FacetRef,
    ListOf,
    MapOf,
    OptionalOf,
    Primitive,
    SchemaRef,
    Type,
)
from afl.kernel.model import Json

_ANYTHING: tuple[Json, ...] = (None, True, 3, "x", [1, 2], {"a": [True], "b": {}})
_WORDS = ("", "a", "pear", "übung", "two words")


class Values:
    """Values for one program."""

    def __init__(self, program: ir.Program) -> None:
        self._schemas = {schema.name: schema.fields for schema in program.schemas}
        self._enums = {enum.name: enum.members for enum in program.enums}

    def record(self, rng: Random, params: Sequence[ir.Param], depth: int = 3) -> dict[str, Json]:
        """A value for each parameter; those that need none may be left out."""
        return {
            param.name: self.value(rng, param.type, depth)
            for param in params
            if not self._may_be_missing(param) or rng.random() < 0.7
        }

    def _may_be_missing(self, param: ir.Param) -> bool:
        return param.default is not None or isinstance(param.type, OptionalOf)

    def value(self, rng: Random, type: Type, depth: int = 3) -> Json:
        match type:
            case Primitive(name):
                return self._primitive(rng, name)
            case OptionalOf(of):
                return None if depth <= 0 or rng.random() < 0.4 else self.value(rng, of, depth - 1)
            case ListOf(of):
                return [
                    self.value(rng, of, depth - 1) for _ in range(rng.randint(0, max(depth, 0)))
                ]
            case MapOf(of):
                keys = rng.sample(_WORDS, rng.randint(0, 2))
                return {key: self.value(rng, of, depth - 1) for key in keys}
            case EnumRef(name):
                return rng.choice(self._enums[name])
            case SchemaRef(name):
                return self.record(rng, self._schemas[name], depth - 1)
            case FacetRef():
                raise AssertionError("only a call can give a step")

    def _primitive(self, rng: Random, name: str) -> Json:
        match name:
            case "String":
                return rng.choice(_WORDS)
            case "Boolean":
                return rng.random() < 0.5
            case "Double":
                return rng.choice((0.0, 1.5, -2.25))
            case "Json":
                return rng.choice(_ANYTHING)
            case _:
                return rng.randint(0, 5)
