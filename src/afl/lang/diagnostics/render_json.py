"""Diagnostics for programs, as values that `json` can write.

    {"version": 1,
     "diagnostics": [{"code", "title", "severity", "message", "file", "range", "label",
                      "related": [{"file", "range", "label"}],
                      "notes": [text],
                      "suggestions": [{"message", "applicability",
                                       "edits": [{"file", "range", "replacement"}]}],
                      "page": "afl explain CODE"}],
     "summary": {"errors": 1, "warnings": 0}}

A range is `{"start": place, "end": place}`, its end is just after the last character, and a place
is `{"line", "column", "offset"}`: lines and columns count from 1, offsets from 0, all of them count
Unicode characters. `docs/reference/schemas/diagnostics.schema.json` says the same as a JSON Schema.
New keys may be added to a version; the ones listed here keep their meaning.
"""

from __future__ import annotations

from collections.abc import Iterable

from afl.lang.diagnostics.codes import CODES
from afl.lang.diagnostics.display import without_surrogates as clean
from afl.lang.diagnostics.model import Diagnostic, Label, Suggestion
from afl.lang.diagnostics.places import Place, end_of, start_of
from afl.lang.source import Span

VERSION = 1


def to_json(diagnostics: Iterable[Diagnostic]) -> dict[str, object]:
    """The diagnostics in the order given, and how many of each severity there are."""
    found = list(diagnostics)
    errors = sum(diagnostic.is_error for diagnostic in found)
    return {
        "version": VERSION,
        "diagnostics": [_diagnostic(diagnostic) for diagnostic in found],
        "summary": {"errors": errors, "warnings": len(found) - errors},
    }


def _diagnostic(diagnostic: Diagnostic) -> dict[str, object]:
    return {
        "code": diagnostic.code,
        "title": CODES[diagnostic.code].title,
        "severity": diagnostic.severity.value,
        "message": clean(diagnostic.message),
        **_label(diagnostic.primary),
        "related": [_label(label) for label in diagnostic.secondary],
        "notes": [clean(note) for note in diagnostic.notes],
        "suggestions": [_suggestion(suggestion) for suggestion in diagnostic.suggestions],
        "page": f"afl explain {diagnostic.code}",
    }


def _label(label: Label) -> dict[str, object]:
    return {**_where(label.span), "label": clean(label.text)}


def _suggestion(suggestion: Suggestion) -> dict[str, object]:
    return {
        "message": clean(suggestion.message),
        "applicability": suggestion.applicability.value,
        "edits": [
            {**_where(edit.span), "replacement": clean(edit.replacement)}
            for edit in suggestion.edits
        ],
    }


def _where(span: Span) -> dict[str, object]:
    return {
        "file": clean(span.source.name),
        "range": {"start": _place(start_of(span)), "end": _place(end_of(span))},
    }


def _place(place: Place) -> dict[str, int]:
    return {"line": place.line, "column": place.column, "offset": place.offset}
