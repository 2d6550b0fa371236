"""The same tokens in another layout: blanks, line breaks and comments at random places."""

from __future__ import annotations

import re
from random import Random

# What stands between \x02 and \x03 (scripts, text blocks, doc comments) is kept as it is.
_PIECE = re.compile(
    r"(?P<blank>\s+)|\x02[^\x03]*\x03"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|[0-9](?:[A-Za-z0-9_]|\.[0-9]|(?<=[0-9][eE])[+-](?=[0-9]))*|[A-Za-z_][A-Za-z0-9_]*"
    r"|#\{|=>|==|!=|<=|>=|&&|\|\||\+\+|\?\?|[^\s\w]"
)
_COMMENTS = (
    "/* note */", "/* a\n   b */", "// to do\n", "//\n", "/**/", '// "quote\n', "/* { ( [ */",
    "// }\n", "/*// */", "// ä → 😀\n", "//no blank\n", "/* * */",
)  # fmt: skip
_BLANKS = (" ", "  ", "\n", "\n\n", "\n\n\n\n", "\t", " \n  ", "\r\n")


def lay_out(text: str, rng: Random) -> str:
    """A text in one of four layouts: as it came, with some comments, dense, or wild."""
    style = rng.choice(("given", "commented", "commented", "dense", "wild"))
    parts: list[str] = []
    for piece, blank in _pieces(text):
        parts.append(_between(parts[-1] if parts else "", piece, blank, style, rng))
        parts.append(piece)
    return "".join(parts) + rng.choice(("", "\n", "\n\n", "// end", "\n/* end */\n"))


def _pieces(text: str) -> list[tuple[str, str]]:
    """Every token with the blanks before it."""
    pieces: list[tuple[str, str]] = []
    blank = ""
    for found in _PIECE.finditer(text):
        if found.lastgroup == "blank":
            blank = found.group()
        else:
            pieces.append((found.group().strip("\x02\x03"), blank))
            blank = ""
    return pieces


def _between(before: str, after: str, blank: str, style: str, rng: Random) -> str:
    if style == "given":
        return blank
    if style == "dense":
        return " " if before and _would_join(before[-1], after[0]) else ""
    if style == "wild":
        blank = rng.choice(_BLANKS) if blank or rng.random() < 0.3 else ""
    if rng.random() < (0.05 if style == "wild" else 0.02):
        comment = rng.choice(_COMMENTS)
        # a sign of division before a comment would start another comment
        return f"{blank} {comment}{rng.choice(_BLANKS)}"
    return blank


def _would_join(left: str, right: str) -> bool:
    both_words = (left.isalnum() or left == "_") and (right.isalnum() or right == "_")
    return both_words or (left + right) in ("--", "//", "/*", "==", "=>", "??", "!=", "<=", '""')
