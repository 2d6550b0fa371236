"""The values of literal tokens."""

from __future__ import annotations

import math
import re

from afl.base.durations import parse_duration
from afl.base.errors import DurationError
from afl.lang.diagnostics.reporter import replace
from afl.lang.parser.cursor import Cursor
from afl.lang.tokens import TEXT
from afl.lang.tree import DoubleLit, DurationLit, IntLit, StringLit

MAX_LONG = 2**63 - 1

_ESCAPE = re.compile(r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_SIMPLE = {'"': '"', "\\": "\\", "/": "/", "n": "\n", "r": "\r", "t": "\t"}


def read_string(cursor: Cursor) -> StringLit:
    """The string at the cursor; the caller has seen that one stands there."""
    index = cursor.take()
    start, end = cursor.starts[index], cursor.ends[index]
    if cursor.kinds[index] == TEXT:
        raw = dedent(cursor.text[start + 3 : end - 3])
        offset = start + 3
    else:
        raw = cursor.text[start + 1 : end - 1]
        offset = start + 1
    if "\\" in raw:
        _check_escapes(cursor, offset, end)
        raw = _ESCAPE.sub(_decode, raw)
    return StringLit(start, end, raw)


def dedent(text: str) -> str:
    """A text block without the indentation that its lines share.

    White space before the first line and after the last one goes too, and lines of white space
    become empty. Moving the whole block to the right or left does not change its value.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    first, rest = lines[0], lines[1:]
    margin = _margin(rest)
    result = [line[margin:].rstrip() if not line.strip() else line[margin:] for line in rest]
    if first.strip():
        result.insert(0, first.lstrip())
    if result and not result[-1].strip():
        result.pop()
    return "\n".join(result)


def _margin(lines: list[str]) -> int:
    margins = [len(line) - len(line.lstrip(" \t")) for line in lines if line.strip()]
    return min(margins, default=0)


def _decode(found: re.Match[str]) -> str:
    braced, four, simple = found.groups()
    if simple is not None:
        return _SIMPLE.get(simple, simple)
    number = int(braced or four, 16)
    if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        return "\ufffd"
    return chr(number)


def _check_escapes(cursor: Cursor, start: int, end: int) -> None:
    for found in _ESCAPE.finditer(cursor.text, start, end):
        braced, four, simple = found.groups()
        span = cursor.source.span(found.start(), found.end())
        if simple is not None:
            if simple not in _SIMPLE:
                cursor.reporter.report(
                    "AFL0005",
                    span,
                    f"`\\{simple}` is not an escape" if simple.strip() else "stray backslash",
                    "unknown escape",
                    notes=[
                        'the escapes are `\\"`, `\\\\`, `\\/`, `\\n`, `\\r`, `\\t`, `\\u0041` and '
                        "`\\u{1F600}`"
                    ],
                    suggestions=[replace(span, f"\\\\{simple}", "to write a backslash, double it")],
                )
            continue
        number = int(braced or four, 16)
        if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
            cursor.reporter.report(
                "AFL0005",
                span,
                f"U+{number:04X} is not a character",
                "no such character",
            )


def read_int(cursor: Cursor) -> IntLit:
    index = cursor.take()
    start, end = cursor.starts[index], cursor.ends[index]
    digits = cursor.text[start:end].replace("_", "").lstrip("0") or "0"
    # Python refuses to convert thousands of digits, and nothing over 19 fits anyway.
    value = int(digits) if len(digits) <= 19 else MAX_LONG + 1
    # One more than the largest Long is allowed here: `-9223372036854775808` is a Long.
    if value > MAX_LONG + 1:
        value = MAX_LONG + 2
    if value > MAX_LONG and not (value == MAX_LONG + 1 and _negated(cursor, index)):
        _out_of_range(cursor, index, "a Long holds at most 9223372036854775807")
        value = 0
    return IntLit(start, end, value)


def _negated(cursor: Cursor, index: int) -> bool:
    return index > 0 and cursor.kinds[index - 1] == "-" and len(cursor.tokens.text(index)) <= 25


def read_double(cursor: Cursor) -> DoubleLit:
    index = cursor.take()
    value = float(cursor.tokens.text(index))
    if math.isinf(value):
        _out_of_range(cursor, index, "a Double holds at most about 1.8e308")
        value = 0.0
    return DoubleLit(cursor.starts[index], cursor.ends[index], value)


def read_duration(cursor: Cursor) -> DurationLit:
    index = cursor.take()
    try:
        ms = parse_duration(cursor.tokens.text(index))
    except DurationError as error:
        ms = 0
        cursor.reporter.report(
            "AFL0006", cursor.span_of(index), "this duration cannot be read", notes=[str(error)]
        )
    return DurationLit(cursor.starts[index], cursor.ends[index], ms)


def _out_of_range(cursor: Cursor, index: int, note: str) -> None:
    cursor.reporter.report(
        "AFL0010", cursor.span_of(index), "this number is too large", "out of range", notes=[note]
    )
