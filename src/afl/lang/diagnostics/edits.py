"""Applying the edits of suggestions to a text."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from afl.lang.diagnostics.model import Applicability, Diagnostic, Edit, Suggestion
from afl.lang.diagnostics.places import bounds
from afl.lang.source import Source


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text after the edits. Of two that overlap the first wins: see `split_overlaps`."""
    kept, _ = split_overlaps(edits)
    parts = []
    position = 0
    for edit in sorted(kept, key=lambda edit: bounds(edit.span)):
        start, end = bounds(edit.span)
        parts += [text[position:start], edit.replacement]
        position = end
    return "".join([*parts, text[position:]])


def split_overlaps(edits: Iterable[Edit]) -> tuple[list[Edit], list[Edit]]:
    """The edits of one text that can be applied together, and those that overlap an earlier one."""
    taken: list[tuple[int, int]] = []
    kept: list[Edit] = []
    ignored: list[Edit] = []
    for edit in edits:
        if _is_free(taken, bounds(edit.span)):
            insort(taken, bounds(edit.span))
            kept.append(edit)
        else:
            ignored.append(edit)
    return kept, ignored


def apply_safe(source: Source, diagnostics: Iterable[Diagnostic]) -> tuple[str, int]:
    """The text of a source after its safe suggestions, and how many of them were applied.

    Each diagnostic gives at most one suggestion, and a suggestion is applied as a whole or not at
    all. One that overlaps an earlier one is left out: checking and fixing again brings it back.
    """
    taken: list[tuple[int, int]] = []
    edits: list[Edit] = []
    count = 0
    for diagnostic in diagnostics:
        suggestion = _first_safe(diagnostic)
        if suggestion is None or any(e.span.source is not source for e in suggestion.edits):
            continue
        own, clashing = split_overlaps(suggestion.edits)
        ranges = [bounds(edit.span) for edit in own]
        if clashing or not all(_is_free(taken, each) for each in ranges):
            continue
        for each in ranges:
            insort(taken, each)
        edits += own
        count += 1
    return apply_edits(source.text, edits), count


def _first_safe(diagnostic: Diagnostic) -> Suggestion | None:
    return next(
        (
            suggestion
            for suggestion in diagnostic.suggestions
            if suggestion.edits and suggestion.applicability is Applicability.SAFE
        ),
        None,
    )


def _is_free(taken: list[tuple[int, int]], wanted: tuple[int, int]) -> bool:
    """Whether a range overlaps none of the taken ones, which are sorted and do not overlap.

    Ranges that touch are fine, but two insertions at one place are not: nobody knows their order.
    """
    index = bisect_left(taken, wanted)
    return all(
        wanted != near and (wanted[1] <= near[0] or near[1] <= wanted[0])
        for near in taken[max(0, index - 1) : index + 1]
    )
