"""The JSON Schema of stored programs, made from the classes of the model.

`program.schema.json` beside this module is what `python -m afl.ir.json_schema` prints; write it
anew when the model changes.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping

from afl.ir.digest import FORMAT
from afl.ir.model import FORMAT_VERSION, Expr, SourceSpan, Statement
from afl.ir.shapes import (
    NODE,
    NODE_NAMES,
    REQUIRED,
    Choice,
    Nodes,
    Record,
    Scalar,
    Sequence,
    Shape,
    declaration_shape,
    fields_of,
    semantic_fields,
    shape_of,
)
from afl.ir.types import Type
from afl.ir.values import Json

_Schema = dict[str, Json]

_LONG: _Schema = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
_HASH: _Schema = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}

#: Unions that stand in many places get a name of their own.
_UNIONS = {"Type": shape_of(Type), "Expr": shape_of(Expr), "Statement": shape_of(Statement)}


def program_schema() -> _Schema:
    """The schema (draft 2020-12) that every stored program satisfies."""
    definitions: dict[str, Json] = {name: _nodes(union) for name, union in _UNIONS.items()}
    body = {name: _schema(declaration_shape(name)) for name in semantic_fields()}
    for cls in _classes():
        definitions[cls.__name__] = _class_schema(cls)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A compiled AFL program, version {FORMAT_VERSION}",
        **_object(
            {
                "format": {"const": FORMAT},
                "version": {"const": FORMAT_VERSION},
                "hash": _HASH,
                "program": _object(body, []),
                "spans": _table(Record(SourceSpan)),
                "docs": _table(shape_of(str)),
            },
            ["format", "version", "hash", "program"],
        ),
        "$defs": definitions,
    }


def schema_text() -> str:
    """What `program.schema.json` holds."""
    return json.dumps(program_schema(), indent=2, ensure_ascii=False) + "\n"


def _classes() -> list[type]:
    """Every class that a stored program can hold, in the order of a walk from the top."""
    waiting: list[Shape] = [declaration_shape(name) for name in semantic_fields()]
    waiting.append(Record(SourceSpan))
    found: dict[type, None] = {}
    while waiting:
        match waiting.pop(0):
            case Sequence(item):
                waiting.append(item)
            case Record(cls) if cls not in found:
                found[cls] = None
                waiting.extend(field.shape for field in fields_of(cls).values())
            case Nodes(members):
                waiting.extend(Record(cls) for cls in members.values())
    return list(found)


def _class_schema(cls: type) -> _Schema:
    fields = fields_of(cls)
    members: dict[str, _Schema] = {}
    required = [name for name, field in fields.items() if field.absent is REQUIRED]
    if cls in NODE_NAMES:
        members[NODE] = {"const": NODE_NAMES[cls]}
        required.insert(0, NODE)
    for name, field in fields.items():
        members[name] = _schema(field.shape)
        if field.absent not in (REQUIRED, None, ()):
            assert isinstance(field.absent, str)
            members[name]["default"] = field.absent
    return _described(cls, _object(members, required))


def _described(cls: type, schema: _Schema) -> _Schema:
    text = inspect.getdoc(cls) or ""
    # A dataclass without a docstring gets its signature as one.
    if not text or text.startswith(f"{cls.__name__}("):
        return schema
    return {"description": " ".join(text.split()), **schema}


def _schema(shape: Shape) -> _Schema:
    match shape:
        case Scalar(kinds):
            return _scalar(kinds)
        case Choice(words):
            return {"enum": list(words)}
        case Sequence(item):
            return {"type": "array", "items": _schema(item)}
        case Record(cls):
            return _reference(cls.__name__)
        case Nodes(members):
            if len(members) == 1:
                return _reference(next(iter(members.values())).__name__)
            for name, union in _UNIONS.items():
                if shape == union:
                    return _reference(name)
            return _nodes(shape)


def _scalar(kinds: frozenset[type]) -> _Schema:
    if kinds == {int}:
        return dict(_LONG)
    names: dict[type, str] = {str: "string", int: "number", float: "number", bool: "boolean"}
    used = list(dict.fromkeys(name for kind, name in names.items() if kind in kinds))
    return {"type": used[0] if len(used) == 1 else list[Json](used)}


def _nodes(shape: Shape) -> _Schema:
    """The schema of an object that its node name tells apart."""
    # By `if` and `then`, not `oneOf`: a validator looks only into the member that it is. So its
    # work does not grow exponentially with the nesting, and it complains about that member.
    assert isinstance(shape, Nodes)
    return {
        "type": "object",
        "required": [NODE],
        "properties": {NODE: {"enum": list(shape.members)}},
        "allOf": [
            {
                "if": {"required": [NODE], "properties": {NODE: {"const": node}}},
                "then": _reference(cls.__name__),
            }
            for node, cls in shape.members.items()
        ],
    }


def _object(members: Mapping[str, _Schema], required: list[str]) -> _Schema:
    schema: _Schema = {"type": "object", "properties": dict(members)}
    if required:
        schema["required"] = list[Json](required)
    schema["additionalProperties"] = False
    return schema


def _table(shape: Shape) -> _Schema:
    return {"type": "object", "additionalProperties": _schema(shape)}


def _reference(name: str) -> _Schema:
    return {"$ref": f"#/$defs/{name}"}


if __name__ == "__main__":
    sys.stdout.write(schema_text())
