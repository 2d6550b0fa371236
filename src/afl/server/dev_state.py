"""What `afl dev` has found in the project that it watches, for the page that shows it."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock

from afl.lang.diagnostics import model as lang
from afl.lang.diagnostics.places import end_of, start_of
from afl.server.models.system import Diagnostic


@dataclass(frozen=True, slots=True)
class DevReport:
    """One look at the project."""

    diagnostics: tuple[Diagnostic, ...] = ()
    #: the sources and modules that are watched
    files: tuple[str, ...] = ()
    #: when the flows were last deployed or the handlers last loaded
    reloaded_at: datetime | None = None
    #: why the handlers could not be loaded, with the traceback
    error: str | None = None


@dataclass(slots=True)
class DevState:
    """The last report. One thread writes it and others read it."""

    _report: DevReport = field(default_factory=DevReport)
    _count: int = 0
    #: another server has other marks
    _life: str = field(default_factory=lambda: secrets.token_hex(4))
    _lock: Lock = field(default_factory=Lock)

    @property
    def report(self) -> DevReport:
        return self._report

    @property
    def mark(self) -> str:
        """The name of the state: another one whenever the report is another."""
        return f"{self._life}-{self._count}"

    def tell(self, report: DevReport) -> None:
        """Has everybody see a new report."""
        with self._lock:
            if report != self._report:
                self._report = report
                self._count += 1


def dev_mark(state: DevState | None) -> str:
    """The mark of the topic `dev`; where nothing is developed, it never changes."""
    return "" if state is None else state.mark


def shown(diagnostics: Iterable[lang.Diagnostic]) -> tuple[Diagnostic, ...]:
    """Mistakes that the compiler found, as the API tells them."""
    return tuple(map(_shown, diagnostics))


def _shown(found: lang.Diagnostic) -> Diagnostic:
    span = found.primary.span
    start, end = start_of(span), end_of(span)
    help = [*(each.message for each in found.suggestions), *found.notes]
    return Diagnostic(
        code=found.code,
        severity=found.severity.value,
        message=found.message,
        file=span.source.name,
        line=start.line,
        column=start.column,
        end_line=end.line,
        end_column=end.column,
        help=help[0] if help else None,
    )
