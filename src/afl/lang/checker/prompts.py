"""Prompt blocks: templates and tools."""

from __future__ import annotations

import re

from afl.ir import model as ir
from afl.lang import tree
from afl.lang.checker.lookup import find
from afl.lang.checker.references import field_type
from afl.lang.checker.scope import Context
from afl.lang.checker.symbols import FacetSymbol
from afl.lang.checker.types import bare
from afl.lang.diagnostics.model import Suggestion
from afl.lang.diagnostics.reporter import advise, replace
from afl.lang.diagnostics.suggest import nearest
from afl.lang.source import Span

_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
#: The same in source text, where an escape such as `\\u{1F600}` is not a placeholder.
_WRITTEN_BRACES = re.compile(r"\\u\{[^}]*\}|\\.|\{\{|\}\}|\{([^{}]*)\}|[{}]", re.DOTALL)
_DOUBLED = ("{{", "}}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*\Z")
_MCP = re.compile(r"mcp:([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)\Z")


def check_prompt(context: Context, facet: FacetSymbol, node: tree.Prompt) -> ir.Prompt | None:
    if facet.kind != "event":
        context.reporter.report(
            "AFL4010",
            context.unit.source.span(node.start, node.start + len("prompt")),
            f"only an event facet can have a prompt, and `{facet.name}` is a {facet.kind}",
            "not here",
            suggestions=[advise(f"declare `event facet {facet.name}`")],
        )
        return None
    texts: dict[str, str] = {}
    tools: tuple[ir.Tool, ...] = ()
    for entry in node.entries:
        if isinstance(entry.value, list):
            tools = _check_tools(context, facet, entry.value)
        else:
            texts[entry.key.text] = entry.value.value
            if entry.key.text != "model":
                _check_placeholders(context, facet, entry.value)
    if not texts.get("template", "").strip():
        missing = "no template" if "template" not in texts else "an empty template"
        context.reporter.report(
            "AFL4011",
            context.unit.source.span(node.start, node.start + len("prompt")),
            f"the prompt of `{facet.name}` has {missing}",
            "nothing to ask",
            suggestions=[advise('add `template "..."`, with `{name}` where a parameter goes')],
        )
        return None
    return ir.Prompt(texts.get("system"), texts["template"], texts.get("model"), tools)


def _check_placeholders(context: Context, facet: FacetSymbol, node: tree.StringLit) -> None:
    found = [match for match in _BRACES.finditer(node.value) if match.group() not in _DOUBLED]
    malformed = False
    unknown: set[str] = set()
    for match, span in zip(found, _places(context, node, len(found)), strict=True):
        name = match.group(1)
        if name is None or not _NAME.match(name):
            # braces that were meant as such come in numbers; one complaint is enough
            if not malformed:
                _report_malformed(context, facet, match.group(), span)
            malformed = True
            continue
        first, *fields = name.split(".")
        if first not in facet.params:
            if first not in unknown:
                _report_unknown_placeholder(context, facet, name, span)
            unknown.add(first)
            continue
        type, shown, at = facet.params[first].type, first, span.start + 1 + len(first)
        for text in fields:
            exact = span.text == match.group()
            start, end = (at + 1, at + 1 + len(text)) if exact else (span.start, span.end)
            type = field_type(context, bare(type), tree.Name(start, end, text), shown)
            shown, at = f"{shown}.{text}", at + 1 + len(text)


def _places(context: Context, node: tree.StringLit, count: int) -> list[Span]:
    """Where the braces of a text stand in the source; the whole text where escapes hide them."""
    whole = context.span(node)
    exact = [
        context.unit.source.span(match.start(), match.end())
        for match in _WRITTEN_BRACES.finditer(context.unit.source.text, whole.start, whole.end)
        if match.group()[0] != "\\" and match.group() not in _DOUBLED
    ]
    return exact if len(exact) == count else [whole] * count


def _report_malformed(context: Context, facet: FacetSymbol, text: str, span: Span) -> None:
    suggestions = []
    meant = text.strip("{} \t\n").removeprefix("$.").split(":")[0]
    exact = span.text[0] in "{}"
    if exact and meant in facet.params:
        suggestions.append(replace(span, f"{{{meant}}}", f"write `{{{meant}}}`"))
    elif exact:
        doubled = span.text.replace("{", "{{").replace("}", "}}")
        suggestions.append(replace(span, doubled, "to mean the braces themselves, double them"))
    context.reporter.report(
        "AFL4013",
        span,
        f"`{text}` is not a placeholder",
        "not a name in braces",
        notes=["a placeholder is `{name}`; a brace by itself is written twice: `{{` or `}}`"],
        suggestions=suggestions,
    )


def _report_unknown_placeholder(
    context: Context, facet: FacetSymbol, name: str, span: Span
) -> None:
    first, dot, rest = name.partition(".")
    guess = nearest(first, facet.params)
    names = ", ".join(f"`{param}`" for param in facet.params) or "none"
    exact = span.text == f"{{{name}}}"
    hint = f"did you mean `{{{guess}}}`?"
    context.reporter.report(
        "AFL4012",
        span,
        f"`{facet.name}` has no parameter `{first}` for the placeholder `{{{name}}}`",
        "no such parameter" if exact else "in this text",
        notes=[f"parameters: {names}"],
        suggestions=[replace(span, f"{{{guess}{dot}{rest}}}", hint) if exact else advise(hint)]
        if guess
        else [],
    )


def _check_tools(
    context: Context, facet: FacetSymbol, nodes: list[tree.Name | tree.StringLit]
) -> tuple[ir.Tool, ...]:
    tools: dict[ir.Tool, None] = {}
    for node in nodes:
        tool = _check_tool(context, facet, node)
        if tool is None:
            continue
        if tool in tools:
            written = context.span(node).text.strip('"')
            context.reporter.report(
                "AFL4025", context.span(node), f"the tool `{written}` is listed twice", "again"
            )
        tools[tool] = None
    return tuple(tools)


def _check_tool(
    context: Context, facet: FacetSymbol, node: tree.Name | tree.StringLit
) -> ir.Tool | None:
    if isinstance(node, tree.StringLit):
        found = _MCP.match(node.value)
        if found is None:
            context.reporter.report(
                "AFL4015",
                context.span(node),
                "an MCP tool is written `mcp:server/tool`",
                "not that form",
                suggestions=_missing_prefix(context, node),
            )
            return None
        return ir.Tool("mcp", found.group(1))
    symbol = find(context.index, facet.unit, node, "AFL1005", "facet")
    if symbol is None:
        return None
    if not isinstance(symbol, FacetSymbol) or symbol.kind != "event":
        context.reporter.report(
            "AFL4014",
            context.span(node),
            f"`{symbol.name}` cannot be a tool, because it is not an event facet",
            "not an event facet",
            suggestions=[advise("list event facets, and MCP tools as `mcp:server/tool`")],
        )
        return None
    return ir.Tool("facet", symbol.qname)


def _missing_prefix(context: Context, node: tree.StringLit) -> list[Suggestion]:
    if not _MCP.match(f"mcp:{node.value}"):
        return []
    written = f"mcp:{node.value}"
    return [replace(context.span(node), f'"{written}"', f"write `{written}`")]
