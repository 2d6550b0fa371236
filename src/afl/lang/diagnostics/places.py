"""Where a span begins and ends, for people and for other programs."""

from __future__ import annotations

from dataclasses import dataclass

from afl.lang.source import Span


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column are counted from 1, the offset from 0; all count characters."""

    line: int
    column: int
    offset: int


def bounds(span: Span) -> tuple[int, int]:
    """Start and end of a span, kept inside its text."""
    start = min(max(span.start, 0), len(span.source.text))
    return start, min(max(span.end, start), len(span.source.text))


def start_of(span: Span) -> Place:
    """The place of the first character."""
    start, _ = bounds(span)
    return Place(*span.source.position(start), start)


def end_of(span: Span) -> Place:
    """The place just after the last character."""
    _, end = bounds(span)
    return Place(*span.source.position(end), end)


def last_line_of(span: Span) -> int:
    """The line of the last character; a line break at the end does not reach the next line."""
    start, end = bounds(span)
    return span.source.position(max(start, end - 1))[0]
