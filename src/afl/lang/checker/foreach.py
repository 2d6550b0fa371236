"""`foreach x in list limit n`."""

from __future__ import annotations

from afl.ir import model as ir
from afl.ir.types import INT, FacetRef, ListOf, Type
from afl.lang import tree
from afl.lang.checker.constants import number
from afl.lang.checker.expressions import check_constant, check_expr, check_value
from afl.lang.checker.mismatch import report_whole_step
from afl.lang.checker.scope import Context, Scope, Variable
from afl.lang.checker.types import UNKNOWN, is_dynamic, may_be_null, show
from afl.lang.diagnostics.model import Label
from afl.lang.diagnostics.reporter import advise


def check_foreach(
    context: Context, scope: Scope, node: tree.Foreach, id: str
) -> tuple[ir.Foreach, Scope]:
    iterable, type = check_expr(context, scope, node.iterable)
    element: Type = UNKNOWN
    if isinstance(type, ListOf):
        element = type.of
    elif is_dynamic(type):
        element = type
    elif isinstance(type, FacetRef):
        message = "foreach goes over a list, and this is a whole step"
        report_whole_step(context, node.iterable, type, message, ListOf(UNKNOWN))
    else:
        context.reporter.report(
            "AFL2008",
            context.span(node.iterable),
            f"foreach goes over a list, not over `{show(type)}`",
            f"this is `{show(type)}`",
            suggestions=[advise("give a default with `?? []`")] if may_be_null(type) else [],
        )
    if iterable == ir.ListExpr(()):
        context.reporter.report(
            "AFL3010", context.span(node.iterable), "this list is empty, so nothing runs", "empty"
        )
    limit: ir.Expr | None = None
    if node.limit is not None:
        limit, _ = check_value(context, scope, node.limit, INT, "the limit of a foreach")
        check_constant(context, node.limit, limit)
        value = number(limit)
        if value is not None and value < 1:
            context.reporter.report(
                "AFL2022",
                context.span(node.limit),
                "the limit of a foreach is at least 1",
                "nothing would ever run",
            )
    name = node.variable.text
    _check_hiding(context, scope, node.variable)
    return (
        ir.Foreach(name, iterable, limit),
        scope.in_foreach(name, Variable(id, element)),
    )


def _check_hiding(context: Context, scope: Scope, name: tree.Name) -> None:
    facet = scope.facet
    first: tree.Node | None = None
    if facet is not None and name.text in facet.params:
        first = facet.params[name.text].node.name
    elif facet is not None:
        aliases = (mixin.node.alias for mixin in facet.mixins)
        first = next((alias for alias in aliases if alias and alias.text == name.text), None)
    if first is not None or name.text in scope.variables:
        secondary = [Label(context.span(first), "the input")] if first is not None else []
        context.reporter.report(
            "AFL1017",
            context.span(name),
            f"`{name.text}` hides the input `$.{name.text}`",
            "already an input",
            secondary=secondary,
            suggestions=[advise("choose another name for the foreach variable")],
        )
