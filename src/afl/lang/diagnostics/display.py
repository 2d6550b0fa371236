"""Any text made safe to show, and how many terminal cells it takes.

Source files hold tabs, wide and combining characters, and sometimes things that could steer a
terminal or reorder a line. Those are written out as `\\u{1b}`, the way AFL itself writes them.
"""

from __future__ import annotations

import re
import unicodedata

TAB_STOP = 4

_SURROGATE = re.compile("[\ud800-\udfff]")


def safe(text: str) -> str:
    """One line of text with everything that is not printable written as an escape."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def without_surrogates(text: str) -> str:
    """A text that can be encoded. Its length stays the same, so offsets still fit."""
    return _SURROGATE.sub("\ufffd", text)


def cells(text: str) -> tuple[list[str], list[int]]:
    """What to show for each character, and the cell where each begins; the last is the end."""
    if text.isascii() and text.isprintable():
        return list(text), list(range(len(text) + 1))
    pieces: list[str] = []
    columns = [0]
    column = 0
    for char in text:
        if char == "\t":
            piece = " " * (TAB_STOP - column % TAB_STOP)
            column += len(piece)
        elif char.isprintable():
            piece = char
            column += 1 if char.isascii() else _width(char)
        else:
            piece = _escape(char)
            column += len(piece)
        pieces.append(piece)
        columns.append(column)
    return pieces, columns


def _escape(char: str) -> str:
    return f"\\u{{{ord(char):x}}}"


def _width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
