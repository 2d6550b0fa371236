"""The text of a comment, ready to be moved."""

from __future__ import annotations

from afl.lang import tokens
from afl.lang.formatter.doc import Comment, CommentPlace
from afl.lang.parser.docs import clean_doc


def read_comment(
    text: str, comment: tokens.Comment, place: CommentPlace, *, blank_after: bool = False
) -> Comment:
    """The comment of a source text, its lines without trailing blanks and line-end variants."""
    raw = text[comment.start : comment.end]
    column = comment.start - (text.rfind("\n", 0, comment.start) + 1)
    lines = tuple(line.rstrip() for line in raw.replace("\r\n", "\n").split("\n"))
    starred = _starred(lines, every_line=comment.is_doc(text))
    if starred is not None:
        lines = starred
    if comment.is_doc(text) and _doc_text(lines) != clean_doc(raw[3:-2]):
        # Rare line breaks that only the doc comment knows of: leave them where they are.
        lines, starred = tuple(raw.replace("\r\n", "\n").split("\n")), None
    return Comment(lines, column, place, starred is not None, blank_after)


def _starred(lines: tuple[str, ...], *, every_line: bool) -> tuple[str, ...] | None:
    """The lines with a star each, if they have one already or get one in any case."""
    rest = [line.strip() for line in lines[1:]]
    if not every_line and not all(line.startswith("*") for line in rest):
        return None
    return lines[0], *(line if line.startswith("*") else f"* {line}".rstrip() for line in rest)


def _doc_text(lines: tuple[str, ...]) -> str:
    return clean_doc("\n".join(lines)[3:-2])
