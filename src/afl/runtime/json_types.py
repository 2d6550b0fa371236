"""The types of a program as JSON Schema: for what models answer, what tools take, what people fill
in.

A value that fits the schema of its type is one that `conversions` takes, but for numbers that no
JSON Schema can tell apart: `2.0` is a whole number to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from afl.ir import model as ir
from afl.ir.doc_comments import DocComment, read_doc
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
from afl.runtime.expressions import constant
from afl.runtime.operators import INTEGER_BOUNDS

Schema = dict[str, Json]

_LOW, _HIGH = INTEGER_BOUNDS[Primitive("Int")]
_PRIMITIVES: Mapping[str, Schema] = {
    "String": {"type": "string"},
    "Int": {"type": "integer", "minimum": _LOW, "maximum": _HIGH},
    "Long": {"type": "integer"},
    "Double": {"type": "number"},
    "Boolean": {"type": "boolean"},
    "Json": {},
    "Duration": {"type": "integer", "description": "A duration in milliseconds."},
}


class JsonTypes:
    """The schemas of one program."""

    def __init__(self, program: ir.Program) -> None:
        self._schemas = {schema.name: schema for schema in program.schemas}
        self._enums = {enum.name: enum for enum in program.enums}
        self._docs = program.docs

    def params(self, facet: ir.Facet) -> Schema:
        """What a facet takes, as an object."""
        return self._whole(facet.params, self.doc(facet.name).params)

    def returns(self, facet: ir.Facet) -> Schema:
        """What a facet returns, as an object."""
        return self._whole(facet.returns, self.doc(facet.name).returns)

    def doc(self, name: str) -> DocComment:
        """What the comment of a declaration says."""
        return read_doc(self._docs.get(name, ""))

    def _whole(self, params: Sequence[ir.Param], docs: Mapping[str, str]) -> Schema:
        used: dict[str, Schema] = {}
        schema = self._record(params, docs, used)
        if used:
            schema["$defs"] = {name: used[name] for name in sorted(used)}
        return schema

    def _record(
        self, params: Sequence[ir.Param], docs: Mapping[str, str], used: dict[str, Schema]
    ) -> Schema:
        members: dict[str, Json] = {}
        for param in params:
            member = self._type(param.type, used)
            if docs.get(param.name):
                member = {**member, "description": docs[param.name]}
            if param.default is not None:
                member = {**member, "default": constant(param.default)}
            members[param.name] = member
        required: list[Json] = [
            param.name
            for param in params
            if param.default is None and not isinstance(param.type, OptionalOf)
        ]
        schema: Schema = {"type": "object", "properties": members}
        if required:
            schema["required"] = required
        schema["additionalProperties"] = False
        return schema

    def _type(self, type_: Type, used: dict[str, Schema]) -> Schema:
        match type_:
            case Primitive(name):
                return dict(_PRIMITIVES[name])
            case OptionalOf(of):
                return {"anyOf": [self._type(of, used), {"type": "null"}]}
            case ListOf(of):
                return {"type": "array", "items": self._type(of, used)}
            case MapOf(of):
                return {"type": "object", "additionalProperties": self._type(of, used)}
            case EnumRef(name):
                return _described(
                    {"type": "string", "enum": list(self._enums[name].members)}, self.doc(name)
                )
            case SchemaRef(name):
                return self._reference(name, used)
            case FacetRef(name):
                return {"type": "object", "description": f"A step of {name}, as it is."}

    def _reference(self, name: str, used: dict[str, Schema]) -> Schema:
        """A schema by its name, since it may hold itself."""
        if name not in used:
            used[name] = {}
            doc = self.doc(name)
            used[name] = _described(self._record(self._schemas[name].fields, doc.params, used), doc)
        return {"$ref": f"#/$defs/{name}"}


def _described(schema: Schema, doc: DocComment) -> Schema:
    return {**schema, "description": doc.text} if doc.text else schema
