"""Reading the contents of cards: each function takes one entry of a map, and knows its type.

A content that does not have it was not written by a turn, and raises `KeyError` or `TypeError`.
"""

from __future__ import annotations

import json

from afl.kernel.model import Json

Content = dict[str, Json]


def text(content: Content, name: str) -> str:
    value = content[name]
    if not isinstance(value, str):
        raise TypeError(f"`{name}` is not text")
    return value


def text_or_none(content: Content, name: str) -> str | None:
    return None if content[name] is None else text(content, name)


def integer(content: Content, name: str) -> int:
    value = content[name]
    if not isinstance(value, int):
        raise TypeError(f"`{name}` is not a whole number")
    return value


def integer_or_none(content: Content, name: str) -> int | None:
    return None if content[name] is None else integer(content, name)


def number_or_none(content: Content, name: str) -> float | None:
    value = content[name]
    if value is not None and not isinstance(value, int | float):
        raise TypeError(f"`{name}` is not a number")
    return None if value is None else float(value)


def flag(content: Content, name: str) -> bool:
    return content[name] is True


def mapping(content: Content, name: str) -> Content:
    return as_map(content[name])


def items(content: Content, name: str) -> list[Json]:
    value = content[name]
    if not isinstance(value, list):
        raise TypeError(f"`{name}` is not a list")
    return value


def as_map(value: Json) -> Content:
    if not isinstance(value, dict):
        raise TypeError("not a map")
    return value


def json_text(value: Json) -> str:
    """JSON on one line, with the keys in their order."""
    return json.dumps(value, ensure_ascii=False)


def sorted_text(value: Json) -> str:
    """JSON on one line, the same for equal values wherever they come from."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
