"""Source lines with marks under them, as rows of styled text.

A mark is drawn under its characters; its text follows on the same row if it is the rightmost one,
and hangs below on a thread if it is not:

    c = Charge(ammount = i.total)
        ------ ^^^^^^^ unknown parameter
        |
        this facet
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from afl.lang.diagnostics.display import cells, safe
from afl.lang.diagnostics.model import Label
from afl.lang.diagnostics.places import bounds, last_line_of, start_of
from afl.lang.source import Source

#: A run of text and its style; a row is what stands right of the gutter.
Row = list[tuple[str, str]]

ELLIPSIS = "..."


@dataclass(frozen=True, slots=True)
class Mark:
    """Characters of one line to draw `sign` under, and what there is to say about them."""

    start: int
    end: int
    sign: str
    style: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A mark in cells of the window."""

    start: int
    end: int
    mark: Mark


def draw_labels(
    source: Source, marks: dict[int, list[Mark]], room: int
) -> Iterable[tuple[str, Row]]:
    """The marked lines of a source in order, each row with the text of its gutter."""
    lines = sorted(marks)
    for line, following in pairwise([*lines, None]):
        assert line is not None  # only the last element of the last pair is None
        first, *rows = draw_line(source.line_text(line), marks[line], room)
        yield str(line), first
        yield from (("", row) for row in rows)
        if following is None or following == line + 1:
            continue
        if following == line + 2:
            # an ellipsis would take as much space as the line itself
            yield str(line + 1), draw_line(source.line_text(line + 1), [], room)[0]
        else:
            yield ELLIPSIS, []


def marks_of(label: Label, sign: str, style: str) -> Iterable[tuple[int, Mark]]:
    """The marks of a label with their lines: one, or two where it spans several lines."""
    source = label.span.source
    start, end = bounds(label.span)
    first, last = start_of(label.span), last_line_of(label.span)
    begin = first.column - 1
    if first.line == last:
        yield first.line, Mark(begin, begin + end - start, sign, style, label.text)
        return
    head = source.line_text(first.line)
    yield first.line, Mark(begin, max(begin, len(head)), sign, style, label.text)
    tail = source.line_text(last)
    stop = min(end - source.line_starts[last - 1], len(tail))
    indent = min(len(tail) - len(tail.lstrip()), stop)
    yield last, Mark(indent, stop, sign, style, "to here")


def draw_line(text: str, marks: Sequence[Mark], room: int) -> list[Row]:
    """A line cut to `room` cells around its marks, and the rows that belong under it.

    Where marks overlap, the first one is drawn on top.
    """
    window = _Window(text, marks, room)
    placed = [_Placed(window.column(m.start), window.column(m.end), m) for m in marks]
    rows: list[Row] = [[("", window.text)]]
    if placed:
        rows += _draw_marks(placed)
    return rows


class _Window:
    """The part of a line that is shown."""

    def __init__(self, text: str, marks: Sequence[Mark], room: int) -> None:
        focus = min(marks[0].start, len(text)) if marks else 0
        # Far more than can be shown, far less than the lines that programs write.
        self._base = max(0, focus - 4 * room)
        part = text[self._base : focus + 4 * room]
        pieces, self._columns = cells(part)
        total = self._columns[-1]
        more_left, more_right = self._base > 0, self._base + len(part) < len(text)
        self._left, self._right = 0, total
        if more_left or more_right or total > room:
            self._left, self._right = self._choose(marks, room)
        self._more_left = more_left or self._left > 0
        self._more_right = more_right or self._right < total
        self.text = self._cut(pieces)

    def column(self, index: int) -> int:
        """The cell of a character in the window; that of an ellipsis for one outside of it."""
        column = self._columns[self._clip(index)]
        last = self._right - 1 if self._more_right else self._right
        return min(max(column, self._left), last) - self._left

    def _choose(self, marks: Sequence[Mark], room: int) -> tuple[int, int]:
        """Which cells to show of a line that is too long: all marks, or else the first, centred."""
        margin = len(ELLIPSIS) + 1
        places = [self._reach(mark, room) for mark in marks] or [(0, 0)]
        low, high = min(low for low, _ in places), max(high for _, high in places)
        if high - low > room - 2 * margin:
            low, high = places[0]
        total = self._columns[-1]
        if high <= room - margin:
            return 0, min(room, total)
        spare = max(room - (high - low), 2 * margin)
        left = max(low - spare // 2, 0)
        # near the end the line needs no room for an ellipsis, only for what hangs over
        left = min(left, max(total, high) - room)
        return max(left, 0), min(max(left, 0) + room, total)

    def _reach(self, mark: Mark, room: int) -> tuple[int, int]:
        """From the first cell of a mark to the last of its text, if that is not too long."""
        start, end = self._columns[self._clip(mark.start)], self._columns[self._clip(mark.end)]
        text = len(mark.text) + 2 if mark.text else 1
        return start, end + text if text < room // 2 else end

    def _clip(self, index: int) -> int:
        return min(max(index - self._base, 0), len(self._columns) - 1)

    def _cut(self, pieces: list[str]) -> str:
        left = self._left + (len(ELLIPSIS) if self._more_left else 0)
        right = self._right - (len(ELLIPSIS) if self._more_right else 0)
        # a character that is only half inside leaves blanks, so that the rest stays in place
        first = bisect_left(self._columns, left)
        last = max(first, bisect_right(self._columns, right) - 1)
        shown = [
            ELLIPSIS if self._more_left else "",
            " " * (self._columns[first] - left),
            *pieces[first:last],
            " " * (right - self._columns[last]),
            ELLIPSIS if self._more_right else "",
        ]
        return "".join(shown)


def _draw_marks(placed: list[_Placed]) -> list[Row]:
    row: dict[int, tuple[str, str]] = {}
    for each in reversed(placed):
        for column in range(each.start, max(each.end, each.start + 1)):
            row[column] = (each.mark.style, each.mark.sign)
    hanging = sorted(
        (each for each in placed if each.mark.text), key=lambda each: (-each.start, -each.end)
    )
    inline = (
        hanging[0] if hanging and max(hanging[0].end, hanging[0].start + 1) > max(row) else None
    )
    if inline is not None:
        hanging = hanging[1:]
        row[max(row) + 2] = (inline.mark.style, safe(inline.mark.text))
    rows = [row]
    if hanging:
        rows.append(_threads(hanging))
    for index, each in enumerate(hanging):
        rest = [other for other in hanging[index + 1 :] if other.start < each.start]
        rows.append({**_threads(rest), each.start: (each.mark.style, safe(each.mark.text))})
    return [_to_row(row) for row in rows]


def _threads(hanging: list[_Placed]) -> dict[int, tuple[str, str]]:
    return {each.start: (each.mark.style, "|") for each in reversed(hanging)}


def _to_row(columns: dict[int, tuple[str, str]]) -> Row:
    """Styled texts at their columns as runs, with blanks between; only the last may be wide."""
    row: Row = []
    position = 0
    for column, (style, text) in sorted(columns.items()):
        if column > position:
            row.append(("", " " * (column - position)))
        if row and row[-1][0] == style:
            row[-1] = (style, row[-1][1] + text)
        else:
            row.append((style, text))
        position = column + len(text)
    return row
