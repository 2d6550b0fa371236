"""Diagnostics for people at a terminal: the source, what is wrong with it, and what would help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from afl.lang.diagnostics.display import safe
from afl.lang.diagnostics.edits import split_overlaps
from afl.lang.diagnostics.model import Diagnostic, Edit, Label, Suggestion
from afl.lang.diagnostics.places import bounds, last_line_of, start_of
from afl.lang.diagnostics.snippet import ELLIPSIS, Mark, Row, draw_labels, draw_line, marks_of
from afl.lang.source import Source, Span

#: Narrower terminals than this wrap; a window of a few characters would help nobody.
MIN_ROOM = 30


@dataclass(frozen=True, slots=True)
class Palette:
    """The styles of the parts, as parameters of the ANSI sequence "select graphic rendition"."""

    error: str
    warning: str
    message: str
    gutter: str
    secondary: str
    note: str
    help: str
    change: str


COLOURS = Palette(
    error="1;31",
    warning="1;33",
    message="1",
    gutter="1;34",
    secondary="1;34",
    note="1",
    help="1;36",
    change="32",
)
_PLAIN = Palette("", "", "", "", "", "", "", "")


def render_human(
    diagnostics: Iterable[Diagnostic],
    *,
    width: int = 100,
    colour: bool = False,
    palette: Palette = COLOURS,
) -> str:
    """All diagnostics in the order given, with an empty line between them and none at the end.

    Source lines are cut to the width; messages, notes and helps are left to the terminal to wrap.
    """
    painter = palette if colour else _PLAIN
    return "\n\n".join(
        "\n".join(_Page(diagnostic, width, painter).lines()) for diagnostic in diagnostics
    )


def summary(diagnostics: Iterable[Diagnostic], files: int) -> str:
    """One line that ends a report: `2 errors and 1 warning in 3 files`."""
    found = [diagnostic.is_error for diagnostic in diagnostics]
    errors = found.count(True)
    warnings = found.count(False)
    parts = [
        _count(number, what)
        for number, what in ((errors, "error"), (warnings, "warning"))
        if number
    ]
    return f"{' and '.join(parts) or 'no problems'} in {_count(files, 'file')}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


class _Page:
    """One diagnostic on its way to text."""

    def __init__(self, diagnostic: Diagnostic, width: int, palette: Palette) -> None:
        self.diagnostic = diagnostic
        self.palette = palette
        self.gutter = len(str(_last_line(diagnostic)))
        self.room = max(width - self.gutter - len(" | "), MIN_ROOM)

    def lines(self) -> Iterator[str]:
        yield self._header()
        for index, (source, labels) in enumerate(self._by_source()):
            if index:
                yield self._bar()
            yield self._location("-->" if index == 0 else ":::", labels[0].span)
            yield self._bar()
            for gutter, row in draw_labels(source, self._marks(labels), self.room):
                yield self._row(gutter, row)
        diagnostic = self.diagnostic
        if diagnostic.notes or diagnostic.suggestions:
            yield self._bar()
        for note in diagnostic.notes:
            yield from self._remark("note", self.palette.note, note)
        for suggestion in diagnostic.suggestions:
            yield from self._remark("help", self.palette.help, suggestion.message)
            yield from self._after(suggestion)

    def _header(self) -> str:
        diagnostic = self.diagnostic
        kind = self._paint(self._tone(), f"{diagnostic.severity.value}[{diagnostic.code}]")
        return kind + self._paint(self.palette.message, f": {safe(diagnostic.message)}")

    def _by_source(self) -> list[tuple[Source, list[Label]]]:
        """The labels of each source, that of the primary label first and in it that label."""
        groups: dict[int, tuple[Source, list[Label]]] = {}
        for label in (self.diagnostic.primary, *self.diagnostic.secondary):
            source = label.span.source
            groups.setdefault(id(source), (source, []))[1].append(label)
        return list(groups.values())

    def _marks(self, labels: list[Label]) -> dict[int, list[Mark]]:
        marks: dict[int, list[Mark]] = {}
        for label in labels:
            is_primary = label is self.diagnostic.primary
            sign = "^" if is_primary else "-"
            style = self._tone() if is_primary else self.palette.secondary
            for line, mark in marks_of(label, sign, style):
                marks.setdefault(line, []).append(mark)
        return marks

    def _after(self, suggestion: Suggestion) -> Iterator[str]:
        """The line that a suggestion changes, as it would be then."""
        change = _changed_line(suggestion.edits, self.palette.change)
        if change is None:
            return
        span, text, marks = change
        if span.source is not self.diagnostic.primary.span.source:
            yield self._location(":::", span)
        yield self._bar()
        line, *rows = draw_line(text, marks, self.room)
        yield self._row(str(start_of(span).line), line)
        for row in rows:
            if any(run.strip() for _, run in row):
                yield self._row("", row)

    def _tone(self) -> str:
        return self.palette.error if self.diagnostic.is_error else self.palette.warning

    def _location(self, arrow: str, span: Span) -> str:
        place = start_of(span)
        sign = self._paint(self.palette.gutter, arrow)
        return f"{' ' * self.gutter}{sign} {safe(span.source.name)}:{place.line}:{place.column}"

    def _remark(self, kind: str, style: str, text: str) -> Iterator[str]:
        first, *rest = text.split("\n")
        head = f"{' ' * self.gutter} {self._paint(self.palette.gutter, '=')} "
        yield f"{head}{self._paint(style, f'{kind}:')} {safe(first)}".rstrip()
        indent = " " * (self.gutter + len(" = : ") + len(kind))
        for line in rest:
            yield f"{indent}{safe(line)}".rstrip()

    def _bar(self) -> str:
        return self._row("", [])

    def _row(self, gutter: str, row: Row) -> str:
        if gutter == ELLIPSIS:
            return self._paint(self.palette.gutter, ELLIPSIS)
        left = self._paint(self.palette.gutter, f"{gutter:>{self.gutter}} |")
        text = "".join(self._paint(style, run) for style, run in row).rstrip()
        return f"{left} {text}" if text else left

    def _paint(self, style: str, text: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if style else text


def _last_line(diagnostic: Diagnostic) -> int:
    labels = (diagnostic.primary, *diagnostic.secondary)
    edits = [edit for suggestion in diagnostic.suggestions for edit in suggestion.edits]
    spans = [label.span for label in labels] + [edit.span for edit in edits]
    return max(last_line_of(span) for span in spans)


def _changed_line(edits: Sequence[Edit], style: str) -> tuple[Span, str, list[Mark]] | None:
    """The first edit's span, the line after all edits and marks under what changed.

    None when the edits are not all in one line, or leave nothing to show.
    """
    ordered = sorted(edits, key=lambda edit: bounds(edit.span))
    if not ordered or not _share_one_line(ordered):
        return None
    source = ordered[0].span.source
    line = start_of(ordered[0].span).line
    before, base = source.line_text(line), source.line_starts[line - 1]
    text, position = "", 0
    marks = []
    for edit in ordered:
        start, end = (offset - base for offset in bounds(edit.span))
        text += before[position:start]
        sign = "~" if start < end else "+"
        # a deletion has nothing to draw under, but the window should still show the place
        marks.append(Mark(len(text), len(text) + len(edit.replacement), sign, style))
        if not edit.replacement:
            marks[-1] = Mark(len(text), len(text), " ", "")
        text += edit.replacement
        position = end
    text += before[position:]
    return (ordered[0].span, text, marks) if text.strip() else None


def _share_one_line(edits: Sequence[Edit]) -> bool:
    line = start_of(edits[0].span).line
    source = edits[0].span.source
    _, clashing = split_overlaps(edits)
    return not clashing and all(
        edit.span.source is source
        and start_of(edit.span).line == line
        and "\n" not in source.text[slice(*bounds(edit.span))]
        and "\n" not in edit.replacement
        for edit in edits
    )
