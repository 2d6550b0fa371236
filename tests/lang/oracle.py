"""A second reader of AFL, made by a parser generator from `oracle.lark`: what is AFL, what not."""

from __future__ import annotations

import re
from pathlib import Path

from lark import Lark
from lark.exceptions import UnexpectedInput

_GRAMMAR = Path(__file__).with_name("oracle.lark").read_text(encoding="utf-8")
# Not the contextual lexer: it takes a reserved word for a name where the word itself cannot stand.
_PARSER = Lark(_GRAMMAR, start="file", parser="lalr", lexer="basic", maybe_placeholders=False)

_BLANK = r"(?:[ \t\r\n\f]|//[^\n]*(?:\n|\Z)|/\*[\s\S]*?\*/)"
_PIECE = re.compile(
    rf"(?P<blank>{_BLANK}+)"
    r'|"""(?:[^\\]|\\[\s\S])*?"""|"(?:[^"\\\n]|\\[^\n])*"'
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|[0-9][A-Za-z0-9_]*|[\s\S]"
)
_OPENING = re.compile(rf"{_BLANK}*(?:(?P<language>[A-Za-z_][A-Za-z0-9_]*){_BLANK}*)?\{{")
_SCRIPT_SIGN = "{|}"


def accepts(text: str) -> bool:
    """Whether a text is an AFL file, by its form alone."""
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        return False
    cut = cut_scripts(text.removeprefix("\ufeff"))
    if cut is None:
        return False
    try:
        _PARSER.parse(cut)
    except UnexpectedInput:
        return False
    return True


def cut_scripts(text: str) -> str | None:
    """The text with every block of Python replaced by a sign; None when a block has no end."""
    parts: list[str] = []
    position, before = 0, ""
    while position < len(text):
        found = _PIECE.match(text, position)
        assert found is not None
        piece = found.group()
        parts.append(piece)
        position = found.end()
        if piece == "script" and before != ".":
            opening = _OPENING.match(text, position)
            if opening is not None:
                end = _end_of_python(text, opening.end())
                if end is None:
                    return None
                parts.append(text[position : opening.end() - 1] + _SCRIPT_SIGN)
                position, piece = end, _SCRIPT_SIGN
        if found.lastgroup != "blank":
            before = piece
    return "".join(parts)


def _end_of_python(text: str, position: int) -> int | None:
    """Just behind the brace that closes a block whose inside starts at `position`."""
    depth = 1
    while position < len(text):
        letter = text[position]
        if letter == "#":
            line_end = text.find("\n", position)
            position = len(text) if line_end < 0 else line_end
        elif letter in "\"'":
            position = _end_of_python_string(text, position, letter)
        else:
            depth += (letter == "{") - (letter == "}")
            position += 1
            if depth == 0:
                return position
    return None


def _end_of_python_string(text: str, position: int, quote: str) -> int:
    triple = text.startswith(quote * 3, position)
    mark = quote * 3 if triple else quote
    position += len(mark)
    while position < len(text):
        if text.startswith(mark, position):
            return position + len(mark)
        if text[position] == "\n" and not triple:
            return position
        position += 2 if text[position] == "\\" else 1
    return len(text)
