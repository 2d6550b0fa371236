"""The one place where diagnostics are made: it knows each code's severity and keeps the order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from afl.lang.diagnostics.codes import CODES
from afl.lang.diagnostics.model import (
    Applicability,
    Diagnostic,
    Edit,
    Label,
    Suggestion,
)
from afl.lang.source import Span


@dataclass(slots=True)
class Reporter:
    """Collects diagnostics. One cause is reported once: the same code at the same place is dropped.

    A reporter with a limit keeps that many and drops the rest; `full` then says so.
    """

    limit: int | None = None
    diagnostics: list[Diagnostic] = field(default_factory=list)
    _seen: set[tuple[str, int, int, int]] = field(default_factory=set)

    @property
    def full(self) -> bool:
        return self.limit is not None and len(self.diagnostics) >= self.limit

    def report(
        self,
        code: str,
        span: Span,
        message: str,
        label: str = "",
        *,
        secondary: Iterable[Label] = (),
        notes: Iterable[str] = (),
        suggestions: Iterable[Suggestion] = (),
    ) -> None:
        key = (code, id(span.source), span.start, span.end)
        if key in self._seen:
            return
        self._seen.add(key)
        if self.full:
            return
        self.diagnostics.append(
            Diagnostic(
                code,
                CODES[code].severity,
                message,
                Label(span, label),
                tuple(secondary),
                tuple(notes),
                tuple(suggestions),
            )
        )


def replace(span: Span, text: str, message: str, *, safe: bool = False) -> Suggestion:
    """A suggestion with one edit."""
    applicability = Applicability.SAFE if safe else Applicability.MAYBE
    return Suggestion(message, (Edit(span, text),), applicability)


def advise(message: str) -> Suggestion:
    """A suggestion in words only."""
    return Suggestion(message)
