"""What the command line, an editor or a server asks of the front-end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from afl.ir.model import Program
from afl.lang.checker import check_files
from afl.lang.diagnostics.model import Diagnostic
from afl.lang.diagnostics.reporter import Enough, Reporter
from afl.lang.parser import parse
from afl.lang.source import Source
from afl.lang.tree import File

__all__ = ["Compilation", "compile_files", "compile_sources", "parse"]

#: After so many errors a check stops: nobody reads on, and each costs time to explain.
MAX_ERRORS = 100


@dataclass(frozen=True, slots=True)
class Compilation:
    """The outcome of a check: diagnostics in reading order, and the program if none is an error."""

    files: tuple[File, ...]
    diagnostics: tuple[Diagnostic, ...]
    program: Program | None

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(diagnostic for diagnostic in self.diagnostics if diagnostic.is_error)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return tuple(diagnostic for diagnostic in self.diagnostics if not diagnostic.is_error)


def compile_sources(sources: Iterable[tuple[str, str]]) -> Compilation:
    """Checks texts, each with its name, as one program."""
    return compile_files([parse(Source(name, text)) for name, text in sources])


def compile_files(files: Sequence[File]) -> Compilation:
    """Checks parsed files as one program."""
    found = [diagnostic for file in files for diagnostic in file.diagnostics]
    program: Program | None = None
    if all(file.complete for file in files):
        reporter = Reporter(limit=MAX_ERRORS)
        try:
            program = check_files(files, reporter)
        except Enough:
            reporter.close(reporter.diagnostics[-1].primary.span)
        found += reporter.diagnostics
    order = {id(file.source): position for position, file in enumerate(files)}
    found.sort(key=lambda d: (order[id(d.primary.span.source)], d.primary.span.start, d.code))
    if any(diagnostic.is_error for diagnostic in found):
        program = None
    return Compilation(tuple(files), tuple(found), program)
