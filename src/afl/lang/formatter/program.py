"""A file as a whole."""

from __future__ import annotations

from dataclasses import dataclass

from afl.lang.diagnostics.model import Diagnostic
from afl.lang.formatter.brackets import write_guards
from afl.lang.formatter.declarations import write_namespace
from afl.lang.formatter.layout import lay_out
from afl.lang.formatter.tokens_out import TokenWriter
from afl.lang.parser import parse
from afl.lang.source import Source
from afl.lang.tree import File


@dataclass(frozen=True, slots=True)
class FormatResult:
    """The formatted text, or None and the errors that stand in the way."""

    text: str | None
    errors: tuple[Diagnostic, ...] = ()


def format_source(source: Source) -> FormatResult:
    """Format a source, if it can be read without an error."""
    file = parse(source)
    errors = tuple(diagnostic for diagnostic in file.diagnostics if diagnostic.is_error)
    if errors:
        return FormatResult(None, errors)
    return FormatResult(format_file(file))


def format_file(file: File) -> str:
    """The text of a file that was read without an error, laid out anew."""
    out = TokenWriter(file.tokens)
    write_guards(out)
    for position, namespace in enumerate(file.namespaces):
        out.line(hard=True, blank=position > 0)
        write_namespace(out, namespace)
        write_guards(out)
    out.finish()
    return lay_out(out.document)
