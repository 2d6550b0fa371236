"""Values of the model to JSON values and back, driven by their shapes.

`write` and `read` call themselves once per level of the JSON, with no function between: `Place`
bounds the levels, and so the depth of the recursion.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from afl.ir.place import Place, shown
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
    fields_of,
)

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]

_WORDS = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}
_LONG = 2**63


def write(value: object, place: Place) -> Json:
    """The JSON value of a part of a program."""
    if isinstance(value, str | int | float):
        check_scalar(value, place)
        return value
    if isinstance(value, tuple):
        items: list[Json] = []
        for index, item in enumerate(value):
            items.append(write(item, place.child(index)))
        return items
    kind: type = type(value)
    result: dict[str, Json] = {NODE: NODE_NAMES[kind]} if kind in NODE_NAMES else {}
    for name, field in fields_of(kind).items():
        part = getattr(value, name)
        if part != field.absent:
            result[name] = write(part, place.child(name))
    return result


def read(shape: Shape, data: object, place: Place) -> object:
    """The part of a program that a JSON value stands for."""
    match shape:
        case Scalar() | Choice():
            return _read_leaf(shape, data, place)
        case Sequence(item):
            if not isinstance(data, list):
                raise place.wrong(f"an array belongs here, not {shown(data)}")
            items = []
            for index, part in enumerate(data):
                items.append(read(item, part, place.child(index)))
            return tuple(items)
        case Record(cls):
            members = read_members(data, place)
            fields = fields_of(cls)
            check_members(members, fields, place)
        case Nodes(classes):
            members = read_members(data, place)
            cls = _class_of(classes, members, place)
            fields = fields_of(cls)
            check_members(members, (NODE, *fields), place)
    values: dict[str, object] = {}
    for name, field in fields.items():
        if name in members:
            values[name] = read(field.shape, members[name], place.child(name))
        elif field.absent is REQUIRED:
            raise place.wrong(f"'{name}' is missing")
        else:
            values[name] = field.absent
    return cls(**values)


def read_members(data: object, place: Place) -> dict[str, object]:
    """The members of an object."""
    if not isinstance(data, dict):
        raise place.wrong(f"an object belongs here, not {shown(data)}")
    return data


def check_members(members: Iterable[str], known: Iterable[str], place: Place) -> None:
    """Refuse members that nothing would read."""
    known = tuple(known)
    for name in members:
        if name not in known:
            raise place.wrong(
                f"{shown(name)} is not known here; this object may have {_listed(known)}"
            )


def check_scalar(value: str | int | float, place: Place) -> None:
    """Refuse what JSON or UTF-8 cannot hold, and integers that a Long cannot hold."""
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
            raise place.wrong("a string holds half of a surrogate pair, which is no character")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise place.wrong(f"a number must be finite, not {value!r}")
    elif not -_LONG <= value < _LONG:
        raise place.wrong("an integer must fit into 64 bits")


def _read_leaf(shape: Scalar | Choice, data: object, place: Place) -> object:
    if isinstance(shape, Choice):
        if data not in shape.words:
            raise place.wrong(f"{_listed(shape.words, 'or')} belongs here, not {shown(data)}")
        return data
    # By type, not isinstance: true is no integer, and 2.0 is no 2.
    if type(data) not in shape.kinds or not isinstance(data, str | int | float):
        expected = " or ".join(words for kind, words in _WORDS.items() if kind in shape.kinds)
        raise place.wrong(f"{expected} belongs here, not {shown(data)}")
    check_scalar(data, place)
    return data


def _class_of(classes: Mapping[str, type], members: dict[str, object], place: Place) -> type:
    if NODE not in members:
        raise place.wrong(f"'{NODE}' is missing; it is {_listed(classes, 'or')}")
    node = members[NODE]
    if not isinstance(node, str) or node not in classes:
        raise place.wrong(f"the node {shown(node)} cannot stand here; use {_listed(classes, 'or')}")
    return classes[node]


def _listed(words: Iterable[str], last: str = "and") -> str:
    *most, end = (f"'{word}'" for word in words)
    return f"{', '.join(most)} {last} {end}" if most else end
