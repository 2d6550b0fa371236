"""Script blocks: that they are Python, and which results they set."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from afl.ir import model as ir
from afl.lang import tree
from afl.lang.checker.scope import Context
from afl.lang.checker.symbols import FacetSymbol
from afl.lang.diagnostics.reporter import advise, replace
from afl.lang.diagnostics.suggest import nearest

_LANGUAGES = ("python",)


@dataclass(frozen=True, slots=True)
class _Fault:
    message: str
    line: int


def derived_inputs(code: str) -> set[str]:
    """The names that a script gives to `result`, as far as they are written out."""
    parsed = _parse(code)
    return set() if isinstance(parsed, _Fault) else _results(parsed)


def check_script(context: Context, node: tree.Script) -> ir.Script:
    """That a script has code, in a language that we run, and that the code is Python."""
    language = node.language.text if node.language is not None else "python"
    if node.language is not None and language not in _LANGUAGES:
        context.reporter.report(
            "AFL4019",
            context.span(node.language),
            f"scripts are written in Python, not in `{language}`",
            "unknown language",
            suggestions=[replace(context.span(node.language), "python", "write `python`")],
        )
        return ir.Script(language, node.code)
    if not node.code.strip():
        context.reporter.report(
            "AFL4018", context.span(node), "this script has no code", "nothing to run"
        )
        return ir.Script(language, node.code)
    parsed = _parse(node.code)
    if isinstance(parsed, _Fault):
        context.reporter.report(
            "AFL4016",
            context.span(node),
            f"this script is not valid Python: {parsed.message}",
            f"in line {parsed.line} of the script",
        )
    return ir.Script(language, node.code)


def check_results(
    context: Context, facet: FacetSymbol, node: tree.Script, *, before: bool
) -> set[str]:
    """The returns that a script sets. `before`: it runs ahead of a body and sets inputs instead."""
    parsed = _parse(node.code)
    if isinstance(parsed, _Fault):
        return set(facet.returns)
    results = _results(parsed)
    if before:
        for name in sorted(results & {*facet.returns} - {*facet.params}):
            context.reporter.report(
                "AFL4017",
                context.span(node),
                f"this script runs before the body and sets inputs, and `{name}` is a return",
                f"sets `{name}`",
                suggestions=[
                    advise("to set returns, write `andThen script { ... }`, or an `event facet`")
                ],
            )
        return set()
    for name in sorted(results - {*facet.returns}):
        guess = nearest(name, facet.returns)
        context.reporter.report(
            "AFL4017",
            context.span(node),
            f"this script sets `{name}`, which `{facet.name}` does not return",
            f"sets `{name}`",
            suggestions=[advise(f"did you mean `{guess}`?")] if guess else [],
        )
    return results


def _parse(code: str) -> ast.Module | _Fault:
    try:
        return ast.parse(code)
    except SyntaxError as error:
        return _Fault(error.msg, error.lineno or 1)
    except (ValueError, RecursionError, MemoryError):
        # NUL bytes, lone surrogates, and nesting that Python itself gives up on
        return _Fault("Python cannot read it", 1)


def _results(module: ast.Module) -> set[str]:
    """Keys of `result["key"] = ...` anywhere in the code."""
    found = set()
    for node in ast.walk(module):
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "result"
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, str)
        ):
            found.add(node.slice.value)
    return found
