"""Diagnostics one to a line, for editors, `grep` and short attention."""

from __future__ import annotations

from collections.abc import Iterable

from afl.lang.diagnostics.display import safe
from afl.lang.diagnostics.model import Diagnostic
from afl.lang.diagnostics.places import start_of


def render_concise(diagnostics: Iterable[Diagnostic]) -> str:
    """Each diagnostic as `file:line:column: error[AFL2001] message`; no line break at the end."""
    return "\n".join(_line(diagnostic) for diagnostic in diagnostics)


def _line(diagnostic: Diagnostic) -> str:
    span = diagnostic.primary.span
    place = start_of(span)
    where = f"{safe(span.source.name)}:{place.line}:{place.column}"
    return f"{where}: {diagnostic.severity.value}[{diagnostic.code}] {safe(diagnostic.message)}"
