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


class Enough(Exception):
    """So much was reported that going on is of no use to anybody."""


@dataclass(slots=True)
class Reporter:
    """Collects diagnostics. One cause is reported once: the same code at the same place is dropped.

    A reporter with a limit takes that many errors and raises `Enough` when the last one has come.
    """

    limit: int | None = None
    diagnostics: list[Diagnostic] = field(default_factory=list)
    _errors: int = 0
    _seen: set[tuple[str, int, int, int]] = field(default_factory=set)

    @property
    def full(self) -> bool:
        return self.limit is not None and self._errors >= self.limit

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
        diagnostic = Diagnostic(
            code,
            CODES[code].severity,
            message,
            Label(span, label),
            tuple(secondary),
            tuple(notes),
            tuple(suggestions),
        )
        self.diagnostics.append(diagnostic)
        if diagnostic.is_error:
            self._errors += 1
            if self.full:
                raise Enough

    def close(self, span: Span) -> None:
        """After `Enough`: say that this is not all."""
        if self.full:
            self.limit = None
            self.report(
                "AFL0110",
                span,
                f"{self._errors} errors so far; the rest was not looked at",
                "stopped here",
                suggestions=[advise("mend the first ones and check again")],
            )


def replace(span: Span, text: str, message: str, *, safe: bool = False) -> Suggestion:
    """A suggestion with one edit."""
    applicability = Applicability.SAFE if safe else Applicability.MAYBE
    return Suggestion(message, (Edit(span, text),), applicability)


def advise(message: str) -> Suggestion:
    """A suggestion in words only."""
    return Suggestion(message)
