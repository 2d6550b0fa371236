"""What the engine keeps, as JSON and back: the server writes it, a client reads it.

A value is read by the type that is expected, so nothing but its fields has to be written. Times are
in ISO 8601, spans of time in microseconds, members of enums by their values.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any, NewType, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from afl.kernel.model import Json

T = TypeVar("T")

_MICROSECOND = timedelta(microseconds=1)
_UNIONS = (Union, types.UnionType)


def encode(value: object) -> Json:
    """A value as JSON."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Enum():
            return encode(value.value)
        case datetime():
            return value.isoformat()
        case timedelta():
            return value // _MICROSECOND
        case Mapping():
            return {str(key): encode(item) for key, item in value.items()}
        case Sequence():
            return [encode(item) for item in value]
    assert is_dataclass(value)
    return {each.name: encode(getattr(value, each.name)) for each in fields(value)}


def decode(kind: type[T], value: Json) -> T:
    """A value of this type from its JSON. What the type does not have is left out: a newer server
    may tell more."""
    return cast("T", _decode(kind, value))


def _decode(kind: object, value: Json) -> object:
    if kind is object:
        return value
    if isinstance(kind, NewType):
        return _decode(kind.__supertype__, value)
    origin = get_origin(kind)
    if origin in _UNIONS:
        members = [each for each in get_args(kind) if each is not types.NoneType]
        # the only union of several is that of all JSON values
        return value if value is None or len(members) > 1 else _decode(members[0], value)
    if origin is not None:
        return _decode_many(kind, value)
    assert isinstance(kind, type)
    return _decode_one(kind, value)


def _decode_many(kind: object, value: Json) -> object:
    arguments = get_args(kind)
    if isinstance(value, dict):
        return {name: _decode(arguments[1], item) for name, item in value.items()}
    if isinstance(value, list):
        items = [_decode(arguments[0], item) for item in value]
        return tuple(items) if get_origin(kind) is tuple else items
    return value


def _decode_one(kind: type, value: Json) -> object:
    if is_dataclass(kind):
        assert isinstance(value, dict)
        hints = _hints(kind)
        return kind(**{name: _decode(hints[name], value[name]) for name in hints if name in value})
    if kind is datetime:
        return datetime.fromisoformat(str(value))
    if kind is timedelta:
        assert isinstance(value, int)
        return timedelta(microseconds=value)
    return kind(value) if issubclass(kind, Enum) else value


@cache
def _hints(kind: type) -> Mapping[str, object]:
    """The types of the fields of a dataclass."""
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(cast("Any", kind))}
