"""Schedules and implicits: calls with constant arguments that stand outside of any body."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar, get_args

from afl.base.cron import CRON_FORM, cron_problem
from afl.ir import model as ir
from afl.lang import tree
from afl.lang.checker.calls import Mixed, check_args, check_call
from afl.lang.checker.lookup import find, find_callable
from afl.lang.checker.scope import Context, Scope
from afl.lang.checker.symbols import FacetSymbol, ImplicitSymbol, Index, ScheduleSymbol
from afl.lang.diagnostics.model import Label
from afl.lang.diagnostics.reporter import advise, replace
from afl.lang.diagnostics.suggest import nearest

P = TypeVar("P", bound=str)

_ZONE = re.compile(r"(?:UTC|[A-Z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){1,2})\Z")


def check_implicits(index: Index) -> None:
    """Checks every implicit and files it under the facet that it serves."""
    for symbol in list(index.symbols.values()):
        if isinstance(symbol, ImplicitSymbol):
            _check_implicit(index, symbol)


def _check_implicit(index: Index, symbol: ImplicitSymbol) -> None:
    context = Context(index, symbol.unit, [])
    call = symbol.node.call
    facet = find(index, symbol.unit, call.target, "AFL1005", "facet")
    if facet is None:
        return
    if not isinstance(facet, FacetSymbol) or facet.is_policy:
        index.reporter.report(
            "AFL1008",
            context.span(call.target),
            f"`{facet.name}` has no calls that an implicit could serve",
            "not a facet",
        )
        return
    key = (symbol.unit.namespace, facet.qname)
    first = index.implicits.get(key)
    if first is not None:
        index.reporter.report(
            "AFL4020",
            context.span(symbol.node.name),
            f"`{facet.name}` already has an implicit in namespace `{symbol.unit.namespace}`",
            "second one",
            secondary=[Label(first.unit.span(first.node.name), "first one")],
            suggestions=[advise("put all arguments into one implicit")],
        )
        return
    scope = Scope(None, symbol.unit, constant="an argument of an implicit")
    args = check_args(context, scope, call, facet.params, facet)
    symbol.args = tuple(
        ir.Argument(name, args[name].value, "implicit") for name in facet.params if name in args
    )
    index.implicits[key] = symbol


def check_schedule(context: Context, symbol: ScheduleSymbol) -> ir.Schedule | None:
    node = symbol.node
    context.place(symbol.qname, node)
    _check_times(context, node)
    workflow = find_callable(context.index, symbol.unit, node.call.target)
    if workflow is None:
        return None
    if not isinstance(workflow, FacetSymbol) or workflow.kind != "workflow":
        context.reporter.report(
            "AFL4023",
            context.span(node.call.target),
            f"a schedule starts a workflow, and `{workflow.name}` is none",
            "not a workflow",
            suggestions=[advise(f"schedule a workflow that calls `{workflow.name}`")],
        )
        return None
    scope = Scope(None, symbol.unit, constant="an argument of a schedule")
    args = check_call(context, scope, node.call, workflow, Mixed())
    cron = node.cron.value if node.cron is not None else None
    every = node.every.ms if node.every is not None else None
    return ir.Schedule(
        symbol.qname,
        workflow.qname,
        args,
        cron,
        every,
        node.zone.value if node.zone is not None else "UTC",
        _text(node.at),
        _text(node.since),
        _text(node.until),
        node.jitter.ms if node.jitter is not None else None,
        _policy(context, node.overlap, get_args(ir.Overlap), ir.DEFAULT_OVERLAP),
        _policy(context, node.catch_up, get_args(ir.CatchUp), ir.DEFAULT_CATCH_UP),
    )


def _text(given: tree.StringLit | None) -> str | None:
    return None if given is None else given.value


def _policy(context: Context, given: tree.Name | None, words: Sequence[P], default: P) -> P:
    """The policy that a word names."""
    if given is None:
        return default
    for word in words:
        if given.text == word:
            return word
    guess = nearest(given.text, words)
    context.reporter.report(
        "AFL4030",
        context.span(given),
        f"there is no policy `{given.text}` here",
        "unknown",
        notes=[f"there are {', '.join(f'`{word}`' for word in words)}"],
        suggestions=[replace(context.span(given), guess, f"did you mean `{guess}`?")]
        if guess
        else [],
    )
    return default


def _check_times(context: Context, node: tree.ScheduleDecl) -> None:
    if node.cron is not None:
        problem = cron_problem(node.cron.value)
        if problem:
            context.reporter.report(
                "AFL4021",
                context.span(node.cron),
                f"this is not a cron expression: {problem}",
                "malformed",
                notes=[CRON_FORM],
            )
    if node.every is not None and node.every.ms < 1000:
        context.reporter.report(
            "AFL4006",
            context.span(node.every),
            "a schedule runs at most once a second",
            "too often",
        )
    for moment in (node.at, node.since, node.until):
        if moment is not None and not _is_time(moment.value):
            context.reporter.report(
                "AFL4029",
                context.span(moment),
                f"`{moment.value}` is not a time",
                "malformed",
                suggestions=[
                    advise("write it as in `2027-01-31T09:00`, in the zone of the schedule")
                ],
            )
    if node.zone is not None and not _ZONE.match(node.zone.value):
        context.reporter.report(
            "AFL4022",
            context.span(node.zone),
            f"`{node.zone.value}` is not the name of a time zone",
            "malformed",
            suggestions=[advise("write `UTC`, or a name such as `Europe/Berlin`")],
        )


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
