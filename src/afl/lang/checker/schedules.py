"""Schedules and implicits: calls with constant arguments that stand outside of any body."""

from __future__ import annotations

import re
from collections.abc import Sequence

from afl.ir import model as ir
from afl.lang import tree
from afl.lang.checker.calls import Mixed, check_args, check_call
from afl.lang.checker.lookup import find, find_callable
from afl.lang.checker.scope import Context, Scope
from afl.lang.checker.symbols import FacetSymbol, ImplicitSymbol, Index, ScheduleSymbol
from afl.lang.diagnostics.model import Label
from afl.lang.diagnostics.reporter import advise

_CRON_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    (
        "month",
        1,
        12,
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    ),
    ("day of week", 0, 7, ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
)
_CRON_ITEM = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/([0-9]+))?\Z")
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
    zone = node.zone.value if node.zone is not None else "UTC"
    return ir.Schedule(symbol.qname, workflow.qname, args, cron, every, zone)


def _check_times(context: Context, node: tree.ScheduleDecl) -> None:
    if node.cron is not None:
        problem = _cron_problem(node.cron.value)
        if problem:
            context.reporter.report(
                "AFL4021",
                context.span(node.cron),
                f"this is not a cron expression: {problem}",
                "malformed",
                notes=["a cron expression is `minute hour day-of-month month day-of-week`"],
            )
    if node.every is not None and node.every.ms < 1000:
        context.reporter.report(
            "AFL4006",
            context.span(node.every),
            "a schedule runs at most once a second",
            "too often",
        )
    if node.zone is not None and not _ZONE.match(node.zone.value):
        context.reporter.report(
            "AFL4022",
            context.span(node.zone),
            f"`{node.zone.value}` is not the name of a time zone",
            "malformed",
            suggestions=[advise("write `UTC`, or a name such as `Europe/Berlin`")],
        )


def _cron_problem(text: str) -> str:
    parts = text.split()
    if len(parts) != len(_CRON_FIELDS):
        return f"it has {len(parts)} field{'' if len(parts) == 1 else 's'}, not {len(_CRON_FIELDS)}"
    for part, (name, low, high, words) in zip(parts, _CRON_FIELDS, strict=True):
        for item in part.split(","):
            problem = _cron_item_problem(item, low, high, words)
            if problem:
                return f"in the {name}, {problem}"
    return ""


def _cron_item_problem(item: str, low: int, high: int, words: Sequence[str]) -> str:
    if not item:
        return "a comma stands alone"
    found = _CRON_ITEM.match(item)
    if found is None:
        return f"`{item}` means nothing"
    _, start, end, every = found.groups()
    if every is not None and not 0 < int(every[:6]) <= high:
        return f"`/{every}` is not a step"
    values = []
    for word in (start, end):
        if word is None:
            continue
        value = _cron_value(word, words, low)
        if value is None or not low <= value <= high:
            return f"`{word}` is not {low} to {high}"
        values.append(value)
    if len(values) == 2 and values[0] > values[1]:
        return f"`{item}` runs backwards"
    return ""


def _cron_value(word: str, words: Sequence[str], low: int) -> int | None:
    if word.isascii() and word.isdigit():
        return int(word[:6])
    lowered = word.lower()
    return words.index(lowered) + low if lowered in words else None
