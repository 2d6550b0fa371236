"""Steps of one block that wait for each other."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from afl.lang.checker.scope import Context, Scope
from afl.lang.diagnostics.model import Label

#: A circle of more steps than this is not shown whole.
_MOST_LINKS = 6


def _looks_ahead(graph: dict[str, set[str]]) -> bool:
    """Whether a step waits for a later one; without that there is no circle."""
    before: set[str] = set()
    for id, needs in graph.items():
        if not needs <= before:
            return True
        before.add(id)
    return False


def check_cycles(context: Context, scope: Scope, waits: dict[str, set[str]]) -> None:
    """Reports steps of one block that wait for each other, through their bodies or not."""
    graph = {
        id: {need for need in needs if need in waits and need != id} for id, needs in waits.items()
    }
    if not _looks_ahead(graph):
        return
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = list(reversed(error.args[1]))
        by_id = {step.id: step for step in scope.steps.values()}
        names = [by_id[id].name for id in cycle]
        first = min(range(len(cycle) - 1), key=lambda i: by_id[cycle[i]].node.start)
        names = names[first:-1] + names[: first + 1]
        links = [f"`{a}` for `{b}`" for a, b in pairwise(names)]
        if len(links) > _MOST_LINKS:
            links[_MOST_LINKS - 2 : -1] = ["..."]
        way = ", ".join(links)
        context.reporter.report(
            "AFL3007",
            context.span(by_id[cycle[first]].node.name),
            f"these steps wait for each other: {way}",
            "would never start",
            secondary=[
                Label(context.span(by_id[id].node.name), "and this one")
                for id in list(dict.fromkeys(cycle))[:_MOST_LINKS]
                if id != cycle[first]
            ],
        )
