"""Prompt blocks: templates and tools."""

from __future__ import annotations

import re

from afl.ir import model as ir
from afl.lang import tree
from afl.lang.checker.lookup import find
from afl.lang.checker.scope import Context
from afl.lang.checker.symbols import FacetSymbol
from afl.lang.diagnostics.reporter import advise, replace
from afl.lang.diagnostics.suggest import nearest

_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
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
    if "template" not in texts:
        context.reporter.report(
            "AFL4011",
            context.unit.source.span(node.start, node.start + len("prompt")),
            f"the prompt of `{facet.name}` has no template",
            "nothing to ask",
            suggestions=[advise('add `template "..."`, with `{name}` where a parameter goes')],
        )
        return None
    return ir.Prompt(texts.get("system"), texts["template"], texts.get("model"), tools)


def _check_placeholders(context: Context, facet: FacetSymbol, node: tree.StringLit) -> None:
    span = context.span(node)
    for found in _BRACES.finditer(node.value):
        text = found.group()
        if text in ("{{", "}}"):
            continue
        name = found.group(1)
        if name is None or not _NAME.match(name):
            context.reporter.report(
                "AFL4013",
                span,
                f"`{text}` is not a placeholder",
                "in this text",
                notes=[
                    "a placeholder is `{name}`; a brace by itself is written twice: `{{` or `}}`"
                ],
            )
            return
        first = name.split(".")[0]
        if first not in facet.params:
            guess = nearest(first, facet.params)
            names = ", ".join(f"`{param}`" for param in facet.params) or "none"
            context.reporter.report(
                "AFL4012",
                span,
                f"`{facet.name}` has no parameter `{first}` for the placeholder `{{{name}}}`",
                "in this text",
                notes=[f"parameters: {names}"],
                suggestions=[advise(f"did you mean `{{{guess}}}`?")] if guess else [],
            )
            return


def _check_tools(
    context: Context, facet: FacetSymbol, nodes: list[tree.Name | tree.StringLit]
) -> tuple[ir.Tool, ...]:
    tools: dict[ir.Tool, None] = {}
    for node in nodes:
        tool = _check_tool(context, facet, node)
        if tool is None:
            continue
        if tool in tools:
            context.reporter.report(
                "AFL4025", context.span(node), f"the tool `{tool.name}` is listed twice", "again"
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
                suggestions=[
                    replace(context.span(node), '"mcp:server/tool"', "name server and tool")
                ],
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
        )
        return None
    return ir.Tool("facet", symbol.qname)
