"""Values that cross an edge of a run, against the types of the program.

Inputs of workflows, arguments, results of handlers and yields are checked here and brought into one
form, so that inside a run nothing has to be checked again: every field of a schema is there, with
its default or null, and a Double is a float. Types are compiled to functions, once for each.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NoReturn

from afl.base.errors import AflError
from afl.ir import model as ir
from afl.ir.types import (
    DURATION,
    INT,
    LONG,
    EnumRef,
    FacetRef,
    ListOf,
    MapOf,
    OptionalOf,
    Primitive,
    SchemaRef,
    Type,
    type_text,
)
from afl.ir.values import Json
from afl.runtime.expressions import constant
from afl.runtime.operators import INTEGER_BOUNDS, described, listed, quoted

#: How deep a value may nest: far more than anybody means, far less than Python's stack.
MAX_NESTING = 200

_SURROGATE = re.compile("[\ud800-\udfff]")

#: Takes a value and how many levels deeper it may go; gives the value in its normal form.
_Check = Callable[[Json, int], Json]


class WrongValue(AflError):
    """A value does not have the type that is wanted where it goes."""

    code = "runtime.wrong_value"

    def __init__(self, message: str | None = None, *, path: str = "") -> None:
        super().__init__(f"`{path}`: {message}" if message and path else message)
        self.path = path
        """Where in the value, such as `comments[2].line`; empty if it is all of it."""


class Conversions:
    """Checks and normalises values for one program."""

    def __init__(self, program: ir.Program) -> None:
        self._schemas = {schema.name: schema for schema in program.schemas}
        self._enums = {enum.name: enum for enum in program.enums}
        self._checks: dict[Type, _Check] = {}
        self._records: dict[tuple[ir.Param, ...], _Record] = {}
        # Hashing parameters costs more than checking their values. The program keeps its own
        # alive, so their ids are theirs alone.
        self._program = program
        self._own: dict[int, _Record | None] = {
            id(params): None for facet in program.facets for params in (facet.params, facet.returns)
        }
        self._own |= {id(schema.fields): None for schema in program.schemas}

    def value(self, value: Json, type: Type, where: str = "") -> Json:
        """The value in the normal form of its type. The given one is not changed.

        Raises:
            WrongValue: it is not a value of that type. `where` is what its path starts with.
        """
        try:
            return self._check(type)(value, MAX_NESTING)
        except _Misfit as misfit:
            raise misfit.at(where) from None

    def record(
        self,
        values: Mapping[str, Json],
        params: Sequence[ir.Param],
        where: str = "",
        *,
        complete: bool = True,
    ) -> dict[str, Json]:
        """A value for each parameter: the given one in its normal form, else its default or null.

        With `complete=False` only what is given is checked, and nothing is added.

        Raises:
            WrongValue: a name is unknown or missing, or a value is not of its type.
        """
        record = self._own.get(id(params)) or self._record(params)
        try:
            if complete:
                return record.complete(values, MAX_NESTING)
            return record.partial(values, MAX_NESTING)
        except _Misfit as misfit:
            raise misfit.at(where) from None

    def _record(self, params: Sequence[ir.Param]) -> _Record:
        key = tuple(params)
        record = self._records.get(key)
        if record is None:
            record = self._records[key] = _Record({param: self._check(param.type) for param in key})
        if id(params) in self._own:
            self._own[id(params)] = record
        return record

    def _check(self, type: Type) -> _Check:
        check = self._checks.get(type)
        if check is None:
            check = self._checks[type] = self._compile(type)
        return check

    def _compile(self, type: Type) -> _Check:
        match type:
            case Primitive(name):
                return _PRIMITIVES[name]
            case OptionalOf(of):
                return _optional(self._check(of))
            case ListOf(of):
                return _list(self._check(of))
            case MapOf(of):
                return _map(self._check(of))
            case EnumRef(name):
                return _enum(self._enums[name])
            case SchemaRef(name):
                # A schema may hold itself, so its fields are compiled when they are first needed.
                schema = self._schemas[name]
                return _schema(schema, lambda: self._record(schema.fields))
            case FacetRef():
                return _step(type)


class _Misfit(Exception):
    """A value that does not fit. Its path is collected from the inside out."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.keys: list[str | int] = []

    def at(self, where: str) -> WrongValue:
        path = where
        for key in reversed(self.keys):
            if isinstance(key, int):
                path += f"[{key}]"
            elif not key.isidentifier():
                path += f"[{quoted(key)}]"
            else:
                path += f".{key}" if path else key
        return WrongValue(str(self), path=path)


def _unfit(expected: str, value: object) -> _Misfit:
    return _Misfit(f"{expected} belongs here, not {described(value)}")


# Records


class _Record:
    """The parameters or returns of a declaration, or the fields of a schema."""

    __slots__ = ("_checks", "_slots")

    def __init__(self, checks: Mapping[ir.Param, _Check]) -> None:
        self._checks = {param.name: check for param, check in checks.items()}
        #: Name, check, whether it may be left out, and what it is then. That value is checked each
        #: time, too: this brings it into its form, and gives nobody a list that others have.
        self._slots: list[tuple[str, _Check, bool, Json]] = [
            (
                param.name,
                check,
                param.default is not None or isinstance(param.type, OptionalOf),
                None if param.default is None else constant(param.default),
            )
            for param, check in checks.items()
        ]

    def complete(self, values: Mapping[str, Json], depth: int) -> dict[str, Json]:
        result: dict[str, Json] = {}
        given = 0
        name = ""
        try:
            for name, check, may_be_missing, otherwise in self._slots:
                if name in values:
                    given += 1
                    result[name] = check(values[name], depth)
                elif may_be_missing:
                    result[name] = check(otherwise, depth)
                else:
                    break
        except _Misfit as misfit:
            misfit.keys.append(name)
            raise
        if given != len(values) or len(result) != len(self._slots):
            self._refuse_names(values)
        return result

    def partial(self, values: Mapping[str, Json], depth: int) -> dict[str, Json]:
        result: dict[str, Json] = {}
        if not values.keys() <= self._checks.keys():
            self._refuse_names(values)
        name = ""
        try:
            for name, value in values.items():
                result[name] = self._checks[name](value, depth)
        except _Misfit as misfit:
            misfit.keys.append(name)
            raise
        return result

    def _refuse_names(self, values: Mapping[str, Json]) -> NoReturn:
        # An unknown name goes first: it is likely a missing one, misspelt.
        for name in values:
            if name not in self._checks:
                raise _Misfit(f"there is no `{name}` here; {_meant(str(name), self._checks)}")
        missing = [
            name
            for name, _, may_be_missing, _ in self._slots
            if name not in values and not may_be_missing
        ]
        raise _Misfit(f"{listed(missing)} {'is' if len(missing) == 1 else 'are'} missing")


def _meant(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"did you mean `{near[0]}`?"
    return f"there is {listed(list(known))}" if known else "nothing is wanted"


def _schema(schema: ir.Schema, compiled: Callable[[], _Record]) -> _Check:
    name = schema.name.rpartition(".")[2]
    record: _Record | None = None

    def check(value: Json, depth: int) -> Json:
        nonlocal record
        if type(value) is not dict:
            raise _unfit(f"a map with the fields of `{name}`", value)
        if depth == 0:
            raise _too_deep()
        if record is None:
            record = compiled()
        return record.complete(value, depth - 1)

    return check


# Lists, maps and the rest


def _optional(of: _Check) -> _Check:
    return lambda value, depth: None if value is None else of(value, depth)


def _list(of: _Check) -> _Check:
    def check(value: Json, depth: int) -> Json:
        if type(value) is not list:
            raise _unfit("a list", value)
        if depth == 0:
            raise _too_deep()
        depth -= 1
        result: list[Json] = []
        try:
            for item in value:
                result.append(of(item, depth))
        except _Misfit as misfit:
            misfit.keys.append(len(result))
            raise
        return result

    return check


def _map(of: _Check) -> _Check:
    def check(value: Json, depth: int) -> Json:
        if type(value) is not dict:
            raise _unfit("a map", value)
        if depth == 0:
            raise _too_deep()
        depth -= 1
        result: dict[str, Json] = {}
        for key, item in value.items():
            if type(key) is not str:
                raise _Misfit(f"the keys of a map are Strings, not {described(key)}")
            try:
                _string(key, depth)
                result[key] = of(item, depth)
            except _Misfit as misfit:
                misfit.keys.append(key)
                raise
        return result

    return check


def _too_deep() -> _Misfit:
    return _Misfit(f"this nests deeper than {MAX_NESTING} levels")


def _enum(enum: ir.Enum) -> _Check:
    members = frozenset(enum.members)
    name = enum.name.rpartition(".")[2]

    def check(value: Json, depth: int) -> Json:
        if type(value) is str and value in members:
            return value
        raise _unfit(f"a member of `{name}` ({listed(list(enum.members), 'or')})", value)

    return check


def _step(type_: FacetRef) -> _Check:
    """A step that is passed whole. The run made it, so its values are in their form already."""

    def check(value: Json, depth: int) -> Json:
        if type(value) is not dict:
            raise _unfit(f"a step of `{type_.name.rpartition('.')[2]}`", value)
        return value

    return check


def _string(value: Json, depth: int) -> Json:
    if type(value) is not str:
        raise _unfit("a String", value)
    if not value.isascii() and _SURROGATE.search(value):
        raise _Misfit("a String cannot hold half of a surrogate pair, which is no character")
    return value


def _integer(of: Type, expected: str) -> _Check:
    low, high = INTEGER_BOUNDS[of]

    def check(value: Json, depth: int) -> Json:
        if type(value) is not int:
            raise _unfit(expected, value)
        if not low <= value <= high:
            shown = str(value) if value.bit_length() <= 64 else "the number"
            raise _Misfit(f"{shown} is out of range for {type_text(of)}")
        return value

    return check


def _double(value: Json, depth: int) -> Json:
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise _Misfit("the number is out of range for Double") from None
    if type(value) is not float:
        raise _unfit("a Double", value)
    if not math.isfinite(value):
        raise _Misfit(f"a Double must be finite, not {value!r}")
    return value


def _boolean(value: Json, depth: int) -> Json:
    if type(value) is not bool:
        raise _unfit("a Boolean", value)
    return value


def _json(value: Json, depth: int) -> Json:
    check = _JSON_KINDS.get(type(value))
    if check is None:
        raise _unfit("a JSON value", value)
    return check(value, depth)


def _same(value: Json, depth: int) -> Json:
    return value


_JSON_KINDS: dict[type, _Check] = {
    str: _string,
    int: _integer(LONG, "a number"),
    float: _double,
    bool: _same,
    type(None): _same,
    list: _list(_json),
    dict: _map(_json),
}
_PRIMITIVES: dict[str, _Check] = {
    "String": _string,
    "Int": _integer(INT, "an Int"),
    "Long": _integer(LONG, "a Long"),
    "Double": _double,
    "Boolean": _boolean,
    "Json": _json,
    "Duration": _integer(DURATION, "a Duration in whole milliseconds"),
}
