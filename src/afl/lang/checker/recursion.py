"""What needs all bodies at once: recursion without a bound, and steps that serve nobody."""

from __future__ import annotations

from collections.abc import Mapping

from afl.lang.checker.scope import CallSite, Context, StepSymbol
from afl.lang.checker.symbols import FacetSymbol, Index, SchemaSymbol
from afl.lang.diagnostics.model import Label
from afl.lang.diagnostics.reporter import advise


def check_recursion(index: Index, contexts: Mapping[str, Context]) -> None:
    """Reports calls that a run can never get out of: a circle of calls none of which is
    conditional."""
    graph = {
        name: [call for call in context.calls if not call.conditional and call.callee in contexts]
        for name, context in contexts.items()
    }
    done: set[str] = set()
    for start in graph:
        if start not in done:
            _walk(index, graph, start, done)


def _walk(index: Index, graph: Mapping[str, list[CallSite]], start: str, done: set[str]) -> None:
    path: list[tuple[str, int]] = [(start, 0)]
    position: dict[str, int] = {start: 0}
    while path:
        name, at = path.pop()
        calls = graph[name]
        if at == len(calls):
            done.add(name)
            del position[name]
            continue
        path.append((name, at + 1))
        call = calls[at]
        if call.callee in position:
            circle = [facet for facet, _ in path[position[call.callee] :]]
            _report(index, call, circle)
        elif call.callee not in done:
            position[call.callee] = len(path)
            path.append((call.callee, 0))


def _report(index: Index, call: CallSite, circle: list[str]) -> None:
    names = [name.rpartition(".")[2] for name in circle]
    way = " calls ".join(f"`{name}`" for name in [*names, names[0]])
    target = index.symbols[call.callee]
    index.reporter.report(
        "AFL3008",
        call.span,
        f"this recursion has no end: {way}",
        "always called again",
        secondary=[Label(target.unit.span(target.node.name), "declared here")],
        suggestions=[advise("put the call into a case of a `when`, so that it can stop")],
    )


def report_idle_steps(index: Index, contexts: Mapping[str, Context]) -> None:
    """Warns of steps that only compute something which nobody reads."""
    effectful = _effectful(index, contexts)
    for name, context in contexts.items():
        facet = index.symbols[name]
        if isinstance(facet, FacetSymbol) and facet.node.damaged:
            continue
        for step in context.steps:
            if not step.read and _is_idle(step, effectful):
                context.reporter.report(
                    "AFL3009",
                    context.span(step.node.name),
                    f"nobody reads the result of `{step.name}`, and it has no effect",
                    "not used",
                    suggestions=[advise("remove the step, or use its result")],
                )


def _is_idle(step: StepSymbol, effectful: set[str]) -> bool:
    if step.callee is None or step.node.clauses or step.node.catch is not None:
        return False
    return isinstance(step.callee, SchemaSymbol) or step.callee.qname not in effectful


def _effectful(index: Index, contexts: Mapping[str, Context]) -> set[str]:
    """Facets whose run can be noticed from outside, directly or through what they call."""
    callers: dict[str, list[str]] = {}
    found: list[str] = []
    for name, context in contexts.items():
        facet = index.symbols[name]
        own = isinstance(facet, FacetSymbol) and facet.kind == "event" and facet.effect != "pure"
        if own or context.has_effect:
            found.append(name)
        for call in context.calls:
            callers.setdefault(call.callee, []).append(name)
    result = set(found)
    while found:
        for caller in callers.get(found.pop(), ()):
            if caller not in result:
                result.add(caller)
                found.append(caller)
    return result
