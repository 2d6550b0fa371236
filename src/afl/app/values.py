"""Between the JSON of a run and the types that handlers are written with.

Annotations say what an argument becomes: a dataclass, a TypedDict, an enum, Decimal, datetime,
timedelta, lists, maps and optionals of these. What has no annotation stays as it is.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import cache
from typing import (
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from afl.ir.types import DURATION, ListOf, MapOf, OptionalOf, Primitive, SchemaRef, Type
from afl.kernel.model import Json
from afl.runtime.conversions import WrongValue
from afl.runtime.operators import described
from afl.runtime.plan import Plan

_Read = Callable[[object, str], Any]
_MILLISECOND = timedelta(milliseconds=1)


# From JSON


def to_python(value: Json, annotation: object, where: str) -> object:
    """A value as its annotation wants it.

    Raises:
        WrongValue: it cannot be that; `where` is what the path in the message starts with.
    """
    return reader(annotation)(value, where)


@cache
def reader(annotation: object) -> _Read:
    """How to make what an annotation says from JSON."""
    origin, args = get_origin(annotation), get_args(annotation)
    if annotation in _SIMPLE:
        return _SIMPLE[annotation]
    if origin in (Union, types.UnionType):
        return _union(args)
    if origin is Literal:
        return _literal(args)
    if origin in (list, Sequence) or annotation is list:
        return _list(args, list)
    if origin in (set, frozenset):
        return _list(args, origin)
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        return _list(args[:1], tuple)
    if origin in (dict, Mapping):
        return _map(args)
    if isinstance(annotation, type):
        if issubclass(annotation, Enum):
            return _enum(annotation)
        if is_dataclass(annotation):
            return _dataclass(annotation)
        if is_typeddict(annotation):
            return _typed_dict(annotation)
    return _as_it_is


def _as_it_is(value: object, where: str) -> object:
    return value


def _wrong(wanted: str, value: object, where: str) -> WrongValue:
    return WrongValue(f"{wanted} belongs here, not {described(value)}", path=where)


def _exactly(kind: type, wanted: str) -> _Read:
    def read(value: object, where: str) -> object:
        if type(value) is not kind:
            raise _wrong(wanted, value, where)
        return value

    return read


def _float(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong("a number", value, where)
    return float(value)


def _decimal(value: object, where: str) -> Decimal:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            return Decimal(str(value))
        except InvalidOperation:
            pass
    raise _wrong("a decimal number", value, where)


def _datetime(value: object, where: str) -> datetime:
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value)
    except ValueError:
        pass
    raise _wrong("a time such as 2027-01-31T09:00:00+01:00", value, where)


def _timedelta(value: object, where: str) -> timedelta:
    if type(value) is not int:
        raise _wrong("a duration in milliseconds", value, where)
    return timedelta(milliseconds=value)


def _none(value: object, where: str) -> None:
    if value is not None:
        raise _wrong("null", value, where)


_SIMPLE: dict[Any, _Read] = {
    str: _exactly(str, "text"),
    int: _exactly(int, "a whole number"),
    bool: _exactly(bool, "true or false"),
    dict: _exactly(dict, "a map"),
    float: _float,
    Decimal: _decimal,
    datetime: _datetime,
    timedelta: _timedelta,
    None: _none,
    type(None): _none,
    Any: _as_it_is,
    object: _as_it_is,
}


def _union(options: Sequence[Any]) -> _Read:
    readers = [reader(option) for option in options]

    def read(value: object, where: str) -> object:
        wrong: WrongValue | None = None
        for each in readers:
            try:
                return each(value, where)
            except WrongValue as error:
                # the first that is no "null" says most about what is wrong
                wrong = wrong or error
        assert wrong is not None
        raise wrong

    return read


def _literal(options: Sequence[Any]) -> _Read:
    def read(value: object, where: str) -> object:
        if value in options:
            return value
        raise _wrong(" or ".join(map(repr, options)), value, where)

    return read


def _list(args: Sequence[Any], make: Callable[[list[Any]], Any]) -> _Read:
    item = reader(args[0]) if args else _as_it_is

    def read(value: object, where: str) -> object:
        if type(value) is not list:
            raise _wrong("a list", value, where)
        return make([item(each, f"{where}[{number}]") for number, each in enumerate(value)])

    return read


def _map(args: Sequence[Any]) -> _Read:
    item = reader(args[1]) if len(args) == 2 else _as_it_is

    def read(value: object, where: str) -> object:
        if type(value) is not dict:
            raise _wrong("a map", value, where)
        return {key: item(each, f"{where}.{key}") for key, each in value.items()}

    return read


def _enum(kind: type[Enum]) -> _Read:
    def read(value: object, where: str) -> object:
        if isinstance(value, str) and value in kind.__members__:
            return kind[value]
        try:
            return kind(value)
        except ValueError:
            names = ", ".join(kind.__members__)
            raise _wrong(f"one of {names}", value, where) from None

    return read


def _dataclass(kind: type[Any]) -> _Read:
    hints = get_type_hints(kind)
    readers = {each.name: reader(hints[each.name]) for each in fields(kind) if each.init}
    needed = [
        each.name
        for each in fields(kind)
        if each.init and each.default is MISSING and each.default_factory is MISSING
    ]
    return _record(kind.__name__, readers, needed, lambda values: kind(**values))


def _typed_dict(kind: type[Any]) -> _Read:
    readers = {name: reader(hint) for name, hint in get_type_hints(kind).items()}
    # not __required_keys__: it is wrong where annotations are kept as text
    marks = {
        name: get_origin(hint) for name, hint in get_type_hints(kind, include_extras=True).items()
    }
    needed = [
        name
        for name, mark in marks.items()
        if mark is Required or (mark is not NotRequired and getattr(kind, "__total__", True))
    ]
    return _record(kind.__name__, readers, needed, lambda values: values)


def _record(
    name: str,
    readers: Mapping[str, _Read],
    needed: Sequence[str],
    make: Callable[[dict[str, Any]], Any],
) -> _Read:
    def read(value: object, where: str) -> object:
        if type(value) is not dict:
            raise _wrong(f"a map with the fields of `{name}`", value, where)
        for key in value:
            if key not in readers:
                raise WrongValue(f"`{name}` has no field `{key}`", path=where)
        for key in needed:
            if key not in value:
                raise WrongValue(f"`{key}` of `{name}` is missing", path=where)
        return make({key: readers[key](each, f"{where}.{key}") for key, each in value.items()})

    return read


# To JSON


def to_json(value: object, type_: Type | None = None, plan: Plan | None = None) -> Json:
    """A value of a handler as JSON, in the form of the type where that is known.

    What it does not know stays as it is, for the check against the facet to refuse.
    """
    if isinstance(type_, OptionalOf):
        type_ = type_.of
    match value:
        case Enum():
            return value.value if isinstance(value.value, str) else value.name
        case None | bool() | int() | float() | str():
            return value
        case Decimal():
            return _number(value, type_)
        case timedelta():
            return value // _MILLISECOND
        case datetime():
            return value.isoformat()
        case list() | tuple() | set() | frozenset():
            of = type_.of if isinstance(type_, ListOf) else None
            return [to_json(item, of, plan) for item in value]
    record = record_of(value)
    if record is None:
        return cast("Json", value)
    kinds = _field_types(type_, plan)
    of = type_.of if isinstance(type_, MapOf) else None
    return {key: to_json(item, kinds.get(key, of), plan) for key, item in record.items()}


def record_of(value: object) -> Mapping[str, Any] | None:
    """The fields of a map or a dataclass; None for anything else."""
    if isinstance(value, Mapping):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    return None


def _number(value: Decimal, type_: Type | None) -> Json:
    if isinstance(type_, Primitive) and type_.name == "Double":
        return float(value)
    is_whole = isinstance(type_, Primitive) and (type_.name in ("Int", "Long") or type_ == DURATION)
    if is_whole and value == value.to_integral_value():
        return int(value)
    return str(value)


def _field_types(type_: Type | None, plan: Plan | None) -> Mapping[str, Type]:
    if isinstance(type_, SchemaRef) and plan is not None:
        return {field.name: field.type for field in plan.schema(type_.name).fields}
    return {}
