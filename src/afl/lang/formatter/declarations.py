"""Namespaces and what they declare."""

from __future__ import annotations

from afl.lang.formatter.blocks import (
    write_call,
    write_catch,
    write_clauses,
    write_mixins,
    write_script,
)
from afl.lang.formatter.brackets import write_body, write_list
from afl.lang.formatter.expressions import write_expr, write_name, write_type
from afl.lang.formatter.tokens_out import TokenWriter
from afl.lang.tree import (
    Declaration,
    EnumDecl,
    FacetDecl,
    ImplicitDecl,
    Name,
    Namespace,
    Param,
    Prompt,
    PromptEntry,
    ScheduleDecl,
    SchemaDecl,
    StringLit,
    Use,
)

_PARENTHESES = ("(", ")")
_BRACES = ("{", "}")


def write_namespace(out: TokenWriter, namespace: Namespace) -> None:
    """A namespace with all that stands in it."""
    out.token("namespace")
    out.space()
    write_name(out, namespace.name)
    out.space()
    write_body(out, namespace.items, _write_item, blank_between=_stand_apart)


def _stand_apart(first: Use | Declaration, second: Use | Declaration) -> bool:
    """Whether a blank line always stands between two items."""
    return type(first) is not type(second) or not isinstance(first, Use | ImplicitDecl)


def _write_item(out: TokenWriter, item: Use | Declaration) -> None:
    match item:
        case Use(name=name):
            out.token("use")
            out.space()
            write_name(out, name)
        case FacetDecl():
            _write_facet(out, item)
        case SchemaDecl() | EnumDecl():
            _write_data(out, item)
        case ImplicitDecl():
            _write_binding(out, item)
        case ScheduleDecl():
            _write_schedule(out, item)


def _write_facet(out: TokenWriter, facet: FacetDecl) -> None:
    if facet.kind == "event":
        out.token("event")
        out.space()
    out.token()
    out.space()
    out.token()
    has_body = facet.catch or facet.prompt or facet.script or facet.clauses
    with out.group():
        write_list(out, _PARENTHESES, facet.params, _write_param)
        if facet.returns is not None:
            out.space()
            out.token("=>")
            out.space()
            write_list(out, _PARENTHESES, facet.returns, _write_param)
        write_mixins(out, facet.mixins)
        if facet.mixins and has_body:
            out.line(" ")
    if not facet.mixins and has_body:
        out.space(joint=True)
    _write_facet_body(out, facet)


def _write_facet_body(out: TokenWriter, facet: FacetDecl) -> None:
    if facet.catch is not None:
        write_catch(out, facet.catch)
        if facet.prompt or facet.script or facet.clauses:
            out.space(joint=True)
    if facet.prompt is not None:
        _write_prompt(out, facet.prompt)
    if facet.script is not None:
        write_script(out, facet.script)
        if facet.clauses:
            out.space(joint=True)
    write_clauses(out, facet.clauses)


def _write_param(out: TokenWriter, param: Param) -> None:
    out.token()
    out.token(":")
    out.space()
    write_type(out, param.type)
    if param.default is not None:
        out.space()
        out.token("=")
        out.space()
        write_expr(out, param.default)


def _write_prompt(out: TokenWriter, prompt: Prompt) -> None:
    out.token()
    out.space()
    write_body(out, prompt.entries, _write_prompt_entry)


def _write_prompt_entry(out: TokenWriter, entry: PromptEntry) -> None:
    out.token()
    out.space()
    if isinstance(entry.value, StringLit):
        out.token()
    else:
        write_list(out, ("[", "]"), entry.value, _write_tool)


def _write_tool(out: TokenWriter, tool: Name | StringLit) -> None:
    if isinstance(tool, Name):
        write_name(out, tool)
    else:
        out.token()


def _write_data(out: TokenWriter, declaration: SchemaDecl | EnumDecl) -> None:
    """Data with a comment somewhere reads better with a line for each part."""
    out.token()
    out.space()
    out.token()
    out.space()
    broken = out.has_comments(declaration.name.end, declaration.end)
    if isinstance(declaration, SchemaDecl):
        write_list(out, _BRACES, declaration.fields, _write_param, pad=" ", broken=broken)
    else:
        write_list(out, _BRACES, declaration.members, write_name, pad=" ", broken=broken)


def _write_binding(out: TokenWriter, declaration: ImplicitDecl | ScheduleDecl) -> None:
    out.token()
    out.space()
    out.token()
    out.space()
    out.token("=")
    out.space()
    write_call(out, declaration.call)


def _write_schedule(out: TokenWriter, schedule: ScheduleDecl) -> None:
    with out.group():
        _write_binding(out, schedule)
        with out.indented():
            for _ in range(_count_clauses(schedule)):
                out.line(" ")
                out.token()
                out.space()
                out.token()


def _count_clauses(schedule: ScheduleDecl) -> int:
    """How many words, each with its value, stand behind the call."""
    more = (
        schedule.zone,
        schedule.since,
        schedule.until,
        schedule.jitter,
        schedule.overlap,
        schedule.catch_up,
    )
    return 1 + sum(each is not None for each in more)
