"""Diagnostics as workflow commands of GitHub Actions, which become marks in a pull request."""

from __future__ import annotations

from collections.abc import Iterable

from afl.lang.diagnostics.codes import CODES
from afl.lang.diagnostics.display import without_surrogates
from afl.lang.diagnostics.model import Diagnostic
from afl.lang.diagnostics.places import end_of, start_of


def render_github(diagnostics: Iterable[Diagnostic]) -> str:
    """One command to a line; no line break at the end."""
    return "\n".join(_command(diagnostic) for diagnostic in diagnostics)


def _command(diagnostic: Diagnostic) -> str:
    span = diagnostic.primary.span
    start, end = start_of(span), end_of(span)
    properties: dict[str, object] = {"file": span.source.name, "line": start.line}
    if start.line == end.line:
        # columns are only understood within one line
        properties |= {"col": start.column, "endColumn": end.column}
    properties |= {
        "endLine": end.line,
        "title": f"{diagnostic.code}: {CODES[diagnostic.code].title}",
    }
    listed = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    notes = [f"note: {note}" for note in diagnostic.notes]
    helps = [f"help: {suggestion.message}" for suggestion in diagnostic.suggestions]
    message = "\n".join([diagnostic.message, *notes, *helps])
    return f"::{diagnostic.severity.value} {listed}::{_escape(message)}"


def _escape(text: str) -> str:
    text = without_surrogates(text)
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
