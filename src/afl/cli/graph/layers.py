"""Sorting the items of one cluster by what they wait for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from afl.cli.graph.model import Graph


def siblings(graph: Graph, parents: Mapping[str, str], source: str, target: str) -> tuple[str, str]:
    """The items that stand in one cluster and have the ends of an edge inside, or are them."""
    above = {item: below for below, item in _way_up(parents, source)}
    for below, item in _way_up(parents, target):
        if item in above:
            return above[item], below
    raise AssertionError(f"{source} and {target} are not in the graph of {graph.name}")


def _way_up(parents: Mapping[str, str], id: str) -> Iterable[tuple[str, str]]:
    while id in parents:
        yield id, parents[id]
        id = parents[id]


def layers(ids: Sequence[str], edges: Iterable[tuple[str, str]]) -> dict[str, int]:
    """The layer of each item: one more than the deepest it waits for.

    Should items wait for each other, the edge that closes the circle is ignored.
    """
    waits: dict[str, list[str]] = {id: [] for id in ids}
    for source, target in edges:
        waits[target].append(source)
    depth: dict[str, int] = {}
    for id in ids:
        _measure(id, waits, depth)
    return depth


def _measure(start: str, waits: Mapping[str, list[str]], depth: dict[str, int]) -> None:
    """Depth-first with a stack of its own: a chain of steps can be longer than Python's."""
    stack = [start]
    active: set[str] = set()
    while stack:
        id = stack[-1]
        active.add(id)
        missing = [each for each in waits[id] if each not in depth and each not in active]
        if missing:
            stack.append(missing[0])
            continue
        known = [depth[each] for each in waits[id] if each in depth]
        depth.setdefault(id, max(known, default=-1) + 1)
        active.discard(id)
        stack.pop()
