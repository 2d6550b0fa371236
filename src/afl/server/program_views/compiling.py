"""Sources that came over the API: compiled as one program, or told what is wrong with them."""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Protocol

from afl.app.errors import BadProgram
from afl.app.front_ends import PipelineFile, compile_together, is_pipeline, read_pipeline
from afl.app.front_ends import workflow_of as workflow_of_pipeline
from afl.ir import model as ir
from afl.lang.api import Compilation, parse
from afl.lang.diagnostics.display import without_surrogates
from afl.lang.diagnostics.model import Diagnostic
from afl.lang.diagnostics.places import end_of, start_of
from afl.lang.diagnostics.render_human import render_human
from afl.lang.source import Source
from afl.lang.tree import File
from afl.server.models.system import Diagnostic as DiagnosticView

_WIDTH = 100


class NamedText(Protocol):
    """A file that was sent."""

    @property
    def name(self) -> str: ...
    @property
    def text(self) -> str: ...


def compile_sent(files: Sequence[NamedText]) -> Compilation:
    """Checks files as one program. A pipeline is named by its path below the folder that all of
    the files are in."""
    if not files:
        raise BadProgram("There is no file. Send at least one, with its name and its text.")
    names = [file.name for file in files]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadProgram(f"Two files are called `{twice}`. Give each a name of its own.")
    folder = os.path.commonpath([os.path.dirname(name) for name in names]) if _fit(names) else ""
    return compile_together([_read(file, folder) for file in files])


def _fit(names: Sequence[str]) -> bool:
    """Whether the names are all of one kind, so that they can have a folder in common."""
    return len({os.path.isabs(name) for name in names}) == 1


def _read(file: NamedText, folder: str) -> File | PipelineFile:
    source = Source(file.name, file.text)
    if not is_pipeline(file.name):
        return parse(source)
    below = os.path.relpath(file.name, folder) if folder else file.name.lstrip("/")
    return read_pipeline(source, workflow_of_pipeline(PurePosixPath(below)))


def compiled(files: Sequence[NamedText]) -> ir.Program:
    """The program of these files.

    Raises:
        BadProgram: it does not compile; the message is what `afl check` says.
    """
    compilation = compile_sent(files)
    if compilation.program is None:
        text = render_human(compilation.errors, width=_WIDTH, colour=False)
        raise BadProgram(f"The flows do not compile.\n{text}")
    return compilation.program


def diagnostic_view(diagnostic: Diagnostic) -> DiagnosticView:
    """A mistake as the API tells it."""
    span = diagnostic.primary.span
    start, end = start_of(span), end_of(span)
    helps = [each.message for each in diagnostic.suggestions] or list(diagnostic.notes)
    return DiagnosticView(
        code=diagnostic.code,
        severity=diagnostic.severity.value,
        message=without_surrogates(diagnostic.message),
        file=span.source.name,
        line=start.line,
        column=start.column,
        end_line=end.line,
        end_column=end.column,
        help=without_surrogates(helps[0]) if helps else None,
    )
