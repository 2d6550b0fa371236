"""Complaints about a value of the wrong type, with a remedy where there is a likely one."""

from __future__ import annotations

import re

from afl.ir.types import DURATION, STRING, EnumRef, FacetRef, ListOf, Type
from afl.lang import tree
from afl.lang.checker.scope import Context
from afl.lang.checker.symbols import EnumSymbol, FacetSymbol
from afl.lang.checker.types import NULL, bare, fits, is_numeric, may_be_null, show
from afl.lang.diagnostics.model import Label, Suggestion
from afl.lang.diagnostics.reporter import advise, replace

_NUMBER = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?")
_MOST_SHOWN = 3


def report_mismatch(
    context: Context,
    node: tree.Expr,
    value: Type,
    target: Type,
    what: str,
    declared: Label | None = None,
) -> None:
    """A value that does not fit. `what` names the place it goes to."""
    span = context.span(node)
    secondary = [declared] if declared is not None else []
    if isinstance(target, FacetRef):
        context.reporter.report(
            "AFL2017",
            span,
            f"{what} wants a step of `{show(target)}`",
            f"this is {'a step of ' if isinstance(value, FacetRef) else ''}`{show(value)}`",
            secondary=secondary,
            suggestions=[advise(f"give the name of a step that calls `{show(target)}`")],
        )
    elif isinstance(value, FacetRef):
        message = f"{what} wants `{show(target)}`, and this is a whole step"
        report_whole_step(context, node, value, message, target, declared)
    elif may_be_null(value) and fits(bare(value), target):
        hint = "give a default with `??`, or test it for null in a `when` first"
        context.reporter.report(
            "AFL2005",
            span,
            f"{what} wants `{show(target)}`, and this may be null",
            f"this is `{show(value)}`",
            secondary=secondary,
            suggestions=[advise(hint)],
        )
    else:
        narrowing = is_numeric(bare(value)) and is_numeric(bare(target))
        context.reporter.report(
            "AFL2004",
            span,
            f"{what} wants `{show(target)}`, not `{show(value)}`",
            f"this is `{show(value)}`",
            secondary=secondary,
            notes=["an Int fits a Long, and both fit a Double; never the other way round"]
            if narrowing
            else [],
            suggestions=_remedy(context, node, value, bare(target)),
        )


def report_whole_step(
    context: Context,
    node: tree.Expr,
    value: FacetRef,
    message: str,
    target: Type | None = None,
    declared: Label | None = None,
) -> None:
    """A step where a value is wanted, which is one of its attributes."""
    context.reporter.report(
        "AFL2016",
        context.span(node),
        message,
        f"a step of `{show(value)}`",
        secondary=[declared] if declared is not None else [],
        suggestions=_attributes(context, node, value, target),
    )


def _attributes(
    context: Context, node: tree.Expr, value: FacetRef, target: Type | None
) -> list[Suggestion]:
    facet = context.index.symbols[value.name]
    assert isinstance(facet, FacetSymbol)  # a FacetRef is made from one
    span = context.span(node)
    fitting = [
        name
        for name, declared in facet.returns.items()
        if target is None or fits(declared.type, target)
    ]
    if len(fitting) == 1:
        text = f"{span.text}.{fitting[0]}"
        return [replace(span, text, f"read what it returns: `{text}`")]
    names = fitting or [*facet.returns, *facet.params]
    if not names:
        return []
    listed = ", ".join(f"`{span.text}.{name}`" for name in names[:_MOST_SHOWN])
    return [advise(f"read one of its attributes: {listed}")]


def _remedy(context: Context, node: tree.Expr, value: Type, target: Type) -> list[Suggestion]:
    span = context.span(node)
    if value == NULL:
        return [advise(f"only an optional type can be null: `{show(target)}?`")]
    if isinstance(target, EnumRef):
        return enum_remedy(context, node, target)
    if isinstance(target, ListOf) and fits(value, target.of):
        return [replace(span, f"[{span.text}]", "make it a list")]
    if is_numeric(target) and isinstance(node, tree.StringLit) and _NUMBER.fullmatch(node.value):
        return [replace(span, node.value, "write numbers without quotes")]
    if target == DURATION and is_numeric(value):
        return [advise("write a Duration with its unit, such as `30s` or `10m`")]
    if target == STRING and isinstance(node, tree.IntLit | tree.DoubleLit | tree.BoolLit):
        return [replace(span, f'"{span.text}"', "write text in quotes")]
    if target == STRING and (is_numeric(value) or isinstance(value, EnumRef)):
        return [advise(f'turn it into text with `"" ++ {span.text}`')] if _is_short(node) else []
    return []


def _is_short(node: tree.Expr) -> bool:
    return isinstance(node, tree.InputRef | tree.NameRef)


def enum_remedy(context: Context, node: tree.Expr, enum: EnumRef) -> list[Suggestion]:
    """For a string literal that spells a member of the enum."""
    symbol = context.index.symbols[enum.name]
    assert isinstance(symbol, EnumSymbol)  # an EnumRef is made from one
    if isinstance(node, tree.StringLit) and node.value in symbol.members:
        text = f"members of an enum are written without quotes: `{node.value}`"
        return [replace(context.span(node), node.value, text)]
    return []
