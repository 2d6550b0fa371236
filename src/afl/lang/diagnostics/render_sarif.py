"""Diagnostics as a SARIF 2.1.0 log, the format that code hosts and review tools read."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from afl.lang.diagnostics.codes import CODES
from afl.lang.diagnostics.display import without_surrogates as clean
from afl.lang.diagnostics.model import Diagnostic, Edit, Label, Suggestion
from afl.lang.diagnostics.places import end_of, start_of
from afl.lang.source import Span

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def to_sarif(diagnostics: Iterable[Diagnostic], *, version: str) -> dict[str, object]:
    """A log with one run; `version` is that of the compiler."""
    found = list(diagnostics)
    codes = sorted({diagnostic.code for diagnostic in found})
    driver = {"name": "afl", "version": version, "rules": [_rule(code) for code in codes]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(diagnostic, codes.index(diagnostic.code)) for diagnostic in found],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str) -> dict[str, object]:
    return {
        "id": code,
        "shortDescription": {"text": CODES[code].title},
        "help": {"text": f"`afl explain {code}` shows an example, the remedy and the reason."},
        "defaultConfiguration": {"level": CODES[code].severity.value},
    }


def _result(diagnostic: Diagnostic, rule_index: int) -> dict[str, object]:
    result: dict[str, object] = {
        "ruleId": diagnostic.code,
        "ruleIndex": rule_index,
        "level": diagnostic.severity.value,
        "message": {"text": _message(diagnostic)},
        "locations": [_location(diagnostic.primary)],
    }
    if diagnostic.secondary:
        result["relatedLocations"] = [
            {"id": number, **_location(label)} for number, label in enumerate(diagnostic.secondary)
        ]
    fixes = [_fix(suggestion) for suggestion in diagnostic.suggestions if suggestion.edits]
    if fixes:
        result["fixes"] = fixes
    return result


def _message(diagnostic: Diagnostic) -> str:
    """Message, notes and helps: most viewers show nothing else."""
    notes = [f"note: {note}" for note in diagnostic.notes]
    helps = [f"help: {suggestion.message}" for suggestion in diagnostic.suggestions]
    return clean("\n".join([diagnostic.message, *notes, *helps]))


def _location(label: Label) -> dict[str, object]:
    location: dict[str, object] = {
        "physicalLocation": {
            "artifactLocation": _artifact(label.span),
            "region": _region(label.span),
        }
    }
    if label.text:
        location["message"] = {"text": clean(label.text)}
    return location


def _fix(suggestion: Suggestion) -> dict[str, object]:
    by_source: dict[int, list[Edit]] = {}
    for edit in suggestion.edits:
        by_source.setdefault(id(edit.span.source), []).append(edit)
    return {
        "description": {"text": clean(suggestion.message)},
        "artifactChanges": [
            {
                "artifactLocation": _artifact(edits[0].span),
                "replacements": [_replacement(edit) for edit in edits],
            }
            for edits in by_source.values()
        ],
    }


def _replacement(edit: Edit) -> dict[str, object]:
    replacement: dict[str, object] = {"deletedRegion": _region(edit.span)}
    if edit.replacement:
        replacement["insertedContent"] = {"text": clean(edit.replacement)}
    return replacement


def _artifact(span: Span) -> dict[str, str]:
    return {"uri": quote(clean(span.source.name).replace("\\", "/"))}


def _region(span: Span) -> dict[str, int]:
    start, end = start_of(span), end_of(span)
    return {
        "startLine": start.line,
        "startColumn": start.column,
        "endLine": end.line,
        "endColumn": end.column,
    }
