"""The cases of a `when`: which can run, and what happens otherwise."""

from __future__ import annotations

from afl.ir import model as ir
from afl.lang import tree
from afl.lang.checker.constants import boolean
from afl.lang.checker.scope import Context
from afl.lang.diagnostics.reporter import advise


def check_reachable(
    context: Context,
    case: tree.Case,
    condition: ir.Expr | None,
    conditions: set[ir.Expr],
    decided: bool,
) -> bool:
    """Warns of a case that cannot run. Answers whether this one always does when it is reached."""
    if condition is None:
        return decided
    value = boolean(condition)
    if decided or value is False or condition in conditions:
        reason = (
            "an earlier case is always true"
            if decided
            else "its condition is always false"
            if value is False
            else "an earlier case has the same condition"
        )
        context.reporter.report(
            "AFL3010",
            context.span(case.condition or case),
            f"this case never runs: {reason}",
            "never runs",
        )
    conditions.add(condition)
    return decided or value is True


def check_default(context: Context, node: tree.When) -> None:
    defaults = [case for case in node.cases if case.condition is None]
    if not defaults:
        context.reporter.report(
            "AFL3011",
            context.unit.source.span(node.start, node.start + len("when")),
            "this `when` does not say what happens otherwise",
            "no default case",
            suggestions=[
                advise("add `case _ => { ... }` as the last case; its block may be empty")
            ],
        )
    elif len(defaults) > 1 or node.cases[-1].condition is not None:
        wrong = defaults[1] if len(defaults) > 1 else defaults[0]
        context.reporter.report(
            "AFL3012",
            context.unit.source.span(wrong.start, wrong.block.start),
            "`case _` takes everything, so it must be the last case, and the only default",
            "later cases would never run" if len(defaults) == 1 else "second default",
        )
