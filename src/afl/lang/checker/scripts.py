"""Script blocks: that they are Python, and which results they set."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from functools import lru_cache

from afl.ir import model as ir
from afl.lang import tree
from afl.lang.checker.scope import Context
from afl.lang.checker.symbols import FacetSymbol
from afl.lang.checker.types import may_be_null
from afl.lang.diagnostics.model import Label
from afl.lang.diagnostics.reporter import advise, replace
from afl.lang.diagnostics.suggest import nearest
from afl.lang.source import Span

_LANGUAGES = ("python",)


@dataclass(frozen=True, slots=True)
class _Fault:
    message: str
    line: int


@dataclass(frozen=True, slots=True)
class _Results:
    """The names that a script gives to `result`, with the first place of each.

    `open`: it uses `result` in other ways too, so it may set more than what is written out.
    """

    keys: dict[str, ast.Constant]
    open: bool


def derived_inputs(code: str) -> set[str]:
    """The names that a script gives to `result`, as far as they are written out."""
    parsed = _parse(code)
    return set() if isinstance(parsed, _Fault) else {*_results(parsed).keys}


def sets_anything(node: tree.Script) -> bool:
    """Whether a script may set results that are not written out as `result["name"] = ...`."""
    if not _is_python(node):
        return True
    parsed = _parse(node.code)
    return isinstance(parsed, _Fault) or not parsed.body or _results(parsed).open


def _is_python(node: tree.Script) -> bool:
    return node.language is None or node.language.text in _LANGUAGES


def check_script(context: Context, node: tree.Script) -> ir.Script:
    """That a script has code, in a language that we run, and that the code is Python."""
    language = node.language.text if node.language is not None else "python"
    if node.language is not None and not _is_python(node):
        context.reporter.report(
            "AFL4019",
            context.span(node.language),
            f"scripts are written in `python`, not in `{language}`",
            "unknown language",
            suggestions=[replace(context.span(node.language), "python", "write `python`")],
        )
        return ir.Script(language, node.code)
    parsed = _parse(node.code)
    if isinstance(parsed, _Fault):
        context.reporter.report(
            "AFL4016",
            _line_span(context, node, parsed.line),
            f"this script is not valid Python: {parsed.message}",
            f"line {parsed.line} of the script",
        )
    elif not parsed.body and not _is_damaged(context, node):
        context.reporter.report(
            "AFL4018", context.span(node), "this script has no code", "nothing to run"
        )
    return ir.Script(language, node.code)


def _is_damaged(context: Context, node: tree.Script) -> bool:
    """Whether the parser could not find the end of the code and left it out."""
    written = context.unit.source.text[node.code_start : node.end - 1]
    return not node.code and bool(written.strip())


def check_results(
    context: Context, facet: FacetSymbol, node: tree.Script, *, before: bool
) -> set[str]:
    """The returns that a script sets. `before`: it runs ahead of a body and sets inputs instead."""
    parsed = _parse(node.code)
    if isinstance(parsed, _Fault) or not _is_python(node):
        return set(facet.returns)
    results = _results(parsed)
    if before:
        _check_inputs(context, facet, node, results)
        return set()
    for name, place in results.keys.items():
        if name in facet.returns:
            continue
        span = _key_span(context, node, place)
        guess = nearest(name, facet.returns)
        context.reporter.report(
            "AFL4017",
            span,
            f"this script sets `{name}`, which `{facet.name}` does not return",
            "not a return",
            secondary=[Label(facet.unit.span(facet.node.name), f"`{facet.name}` is declared here")],
            suggestions=[replace(span, f'"{guess}"', f"did you mean `{guess}`?")] if guess else [],
        )
    if node is facet.node.script and parsed.body and not facet.has_body and not results.open:
        _check_complete(context, facet, node, results)
    return {*results.keys}


def _check_inputs(
    context: Context, facet: FacetSymbol, node: tree.Script, results: _Results
) -> None:
    for name, place in results.keys.items():
        if name in facet.returns and name not in facet.params:
            context.reporter.report(
                "AFL4017",
                _key_span(context, node, place),
                f"this script runs before the body and sets inputs, and `{name}` is a return",
                "sets a return",
                suggestions=[
                    advise("to set returns, write `andThen script { ... }`, or an `event facet`")
                ],
            )


def _check_complete(
    context: Context, facet: FacetSymbol, node: tree.Script, results: _Results
) -> None:
    """An event facet that a script serves gets its returns from nowhere else."""
    if results.keys.keys() - facet.returns.keys():
        # one of those that were reported may be the one that is missing
        return
    for declared in facet.returns.values():
        if declared.name in results.keys or declared.has_default or may_be_null(declared.type):
            continue
        context.reporter.report(
            "AFL3003",
            context.unit.source.span(node.start, node.start + len("script")),
            f"the script of `{facet.name}` never sets `{declared.name}`",
            f"`{declared.name}` never set",
            secondary=[Label(facet.unit.span(declared.node), "declared here")],
            suggestions=[advise(f'add `result["{declared.name}"] = ...`')],
        )


@lru_cache(maxsize=64)
def _parse(code: str) -> ast.Module | _Fault:
    try:
        with warnings.catch_warnings():
            # what Python would only warn of is its own business, and would end up on the terminal
            warnings.simplefilter("ignore")
            module = ast.parse(code)
            # finds what the parser lets pass, such as `return` outside a function
            compile(module, "<script>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return _Fault(error.msg, error.lineno or 1)
    except (ValueError, RecursionError, MemoryError):
        # NUL bytes, lone surrogates, and nesting that Python itself gives up on
        return _Fault("Python cannot read it", 1)
    return module


def _results(module: ast.Module) -> _Results:
    """How a script uses `result`."""
    keys: dict[str, ast.Constant] = {}
    named: set[ast.expr] = set()
    names: set[ast.expr] = set()
    for node in ast.walk(module):
        match node:
            case ast.Subscript(ast.Name("result") as name, ast.Constant(str() as key) as place):
                named.add(name)
                if isinstance(node.ctx, ast.Store):
                    keys.setdefault(key, place)
            case ast.Name("result"):
                names.add(node)
            case _:
                pass
    return _Results(keys, bool(names - named))


def _line_span(context: Context, node: tree.Script, line: int) -> Span:
    """A line of the code, or the word `script` where there is no such line."""
    source = context.unit.source
    lines = node.code.split("\n")
    text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    start = _position(context, node, line, 0)
    if not text or start is None:
        return source.span(node.start, node.start + len("script"))
    start += len(lines[line - 1]) - len(lines[line - 1].lstrip())
    return source.span(start, start + len(text))


def _key_span(context: Context, node: tree.Script, place: ast.Constant) -> Span:
    start = _position(context, node, place.lineno, place.col_offset)
    end = _position(context, node, place.end_lineno or 0, place.end_col_offset or 0)
    if start is None or end is None:
        return context.span(node)
    return context.unit.source.span(start, end)


def _position(context: Context, node: tree.Script, line: int, column: int) -> int | None:
    """Where a place of the code stands in the file: its lines lost the indentation they share.

    Columns count bytes of UTF-8, as Python does.
    """
    code = node.code.split("\n")
    written = context.unit.source.text[node.code_start : node.end - 1].split("\n")
    at = line - 1 + (not written[0].strip())
    if not 0 < line <= len(code) or at >= len(written):
        return None
    lost = len(written[at].rstrip()) - len(code[line - 1].rstrip())
    inside = len(code[line - 1].encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore"))
    return node.code_start + sum(len(text) + 1 for text in written[:at]) + lost + inside
