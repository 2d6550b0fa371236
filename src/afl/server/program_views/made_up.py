"""Values made up by type: what stands in for the work of facets when a workflow is tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from afl.ir import model as ir
from afl.ir.types import EnumRef, FacetRef, ListOf, MapOf, OptionalOf, Primitive, SchemaRef, Type
from afl.kernel.model import Json

#: Schemas that hold each other, or themselves, are made up to this depth.
_DEEPEST = 6
_PRIMITIVES: Mapping[str, Json] = {
    "Int": 1,
    "Long": 1,
    "Double": 1.0,
    "Boolean": True,
    "Json": {},
    "Duration": 1000,
}


class MadeUp:
    """The values of one program: always the same ones."""

    def __init__(self, program: ir.Program) -> None:
        self._schemas = {schema.name: schema for schema in program.schemas}
        self._enums = {enum.name: enum for enum in program.enums}

    def record(self, params: Sequence[ir.Param]) -> dict[str, Json]:
        """A value for each, but for those that have a default."""
        return self._record(params, 0)

    def _record(self, params: Sequence[ir.Param], depth: int) -> dict[str, Json]:
        return {
            each.name: self._value(each.name, each.type, depth)
            for each in params
            if each.default is None
        }

    def _value(self, name: str, type_: Type, depth: int) -> Json:
        match type_:
            case Primitive("String"):
                return name
            case Primitive(primitive):
                return _PRIMITIVES[primitive]
            case OptionalOf(of):
                return None if depth >= _DEEPEST else self._value(name, of, depth)
            case ListOf(of):
                return [] if depth >= _DEEPEST else [self._value(name, of, depth + 1)]
            case MapOf():
                return {}
            case EnumRef(enum):
                return self._enums[enum].members[0]
            case SchemaRef(schema):
                return self._record(self._schemas[schema].fields, depth + 1)
            case FacetRef():
                return {}
