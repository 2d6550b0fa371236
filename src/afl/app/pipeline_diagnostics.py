"""The problems of a pipeline as diagnostics, like those of AFL."""

from __future__ import annotations

from collections.abc import Sequence

from afl.ir.model import SourceSpan
from afl.lang.api import MAX_ERRORS
from afl.lang.diagnostics.model import Diagnostic, Label, Suggestion
from afl.lang.diagnostics.reporter import Enough, Reporter, advise, replace
from afl.lang.diagnostics.suggest import nearest
from afl.lang.source import Source, Span
from afl.pipelines.problems import Fix, Problem, Range

_QUOTES = "\"'"


def diagnostics_of(problems: Sequence[Problem], source: Source) -> tuple[Diagnostic, ...]:
    """The diagnostics, as many as anybody reads."""
    reporter = Reporter(limit=MAX_ERRORS)
    try:
        for problem in problems:
            _report(problem, source, reporter)
    except Enough:
        reporter.close(reporter.diagnostics[-1].primary.span)
    return tuple(reporter.diagnostics)


def span_of(source: Source, range: Range) -> Span:
    return source.span(range.start, range.end)


def place_of(source: Source, range: Range) -> SourceSpan:
    """Where a range is, as a program keeps it."""
    line, column = source.position(range.start)
    end_line, end_column = source.position(range.end)
    return SourceSpan(source.name, line, column, end_line, end_column)


def _report(problem: Problem, source: Source, reporter: Reporter) -> None:
    span = span_of(source, problem.range)
    suggestions = [_suggestion(fix, source) for fix in problem.fixes]
    written = span.text.strip(_QUOTES)
    guess = nearest(written, problem.candidates) if problem.candidates else None
    if guess is not None:
        meant = span.text.replace(written, guess)
        suggestions.append(replace(span, meant, f"did you mean `{guess}`?"))
    reporter.report(
        problem.code,
        span,
        problem.message,
        problem.label,
        secondary=[Label(span_of(source, mark.range), mark.label) for mark in problem.related],
        notes=problem.notes,
        suggestions=suggestions,
    )


def _suggestion(fix: Fix, source: Source) -> Suggestion:
    if fix.range is None:
        return advise(fix.message)
    return replace(span_of(source, fix.range), fix.text, fix.message, safe=fix.safe)
