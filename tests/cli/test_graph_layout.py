"""Places in the SVG: nothing overlaps, and arrows go down between the boxes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from afl.cli.graph.geometry import Box, Layout
from afl.cli.graph.layers import layers
from afl.cli.graph.layout import lay_out
from afl.cli.graph.model import (
    Cluster,
    Edge,
    Graph,
    Item,
    Node,
    build_graph,
    clusters,
    simplified,
)
from afl.lang.api import compile_sources
from tests.cli.programs import EVERYTHING
from tests.cli.test_graph import graph_of
from tests.lang.generate import random_program


def _overlap(one: Box, other: Box) -> bool:
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


def _nodes(cluster: Cluster) -> Iterator[Node]:
    for item in cluster.items:
        if isinstance(item, Node):
            yield item
        else:
            yield from _nodes(item)


def check_layout(graph: Graph, layout: Layout) -> None:
    boxes = layout.boxes
    for cluster in clusters(graph.root):
        for one, other in combinations(cluster.items, 2):
            assert not _overlap(boxes[one.id], boxes[other.id]), (one.id, other.id)
        outer = boxes.get(cluster.id, Box(0, 0, layout.width, layout.height))
        for item in cluster.items:
            box = boxes[item.id]
            assert outer.x <= box.x
            assert outer.y <= box.y
            assert box.x + box.width <= outer.x + outer.width + 1e-6
            assert box.y + box.height <= outer.y + outer.height + 1e-6
    for index, edge in enumerate(graph.edges):
        _check_way(graph, layout, index, edge)


def _check_way(graph: Graph, layout: Layout, index: int, edge: Edge) -> None:
    way = layout.ways[index]
    source, target = layout.boxes[edge.source], layout.boxes[edge.target]
    assert way[0].top == pytest.approx(source.y + source.height)
    assert way[-1].bottom == pytest.approx(target.y)
    assert source.x <= way[0].x <= source.x + source.width
    assert target.x <= way[-1].x <= target.x + target.width
    for lane, following in pairwise(way):
        assert lane.top <= lane.bottom <= following.top + 1e-6
    # straight parts keep clear of every node
    for node in _nodes(graph.root):
        box = layout.boxes[node.id]
        for lane in way:
            inside = box.x < lane.x < box.x + box.width
            beside = lane.bottom <= box.y + 1e-6 or lane.top >= box.y + box.height - 1e-6
            assert not inside or beside, (edge, node.id)


def test_a_workflow_with_everything() -> None:
    graph = simplified(graph_of(EVERYTHING, "shop.Order"))
    layout = lay_out(graph)
    check_layout(graph, layout)
    assert all(box.width > 0 and box.height > 0 for box in layout.boxes.values())


@st.composite
def _graphs(draw: st.DrawFn) -> Graph:
    """Clusters in clusters, and arrows that go from earlier nodes to later ones."""
    count = 0

    def cluster(depth: int) -> Cluster:
        nonlocal count
        count += 1
        id = f"c{count}"
        items: list[Item] = []
        for _ in range(draw(st.integers(1, 4))):
            if depth < 3 and draw(st.integers(0, 3)) == 0:
                items.append(cluster(depth + 1))
            else:
                count += 1
                items.append(Node(f"n{count}", "event", f"step{count}", "Facet"))
        return Cluster(id, "block", f"block {id}", tuple(items))

    root = cluster(0)
    nodes = [node.id for node in _nodes(root)]
    pairs = [(one, other) for index, one in enumerate(nodes) for other in nodes[index + 1 :]]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=12, unique=True)) if pairs else []
    return Graph("w", root, tuple(Edge(one, other, "data") for one, other in chosen))


@given(graph=_graphs())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_graph(graph: Graph) -> None:
    check_layout(graph, lay_out(graph))


@pytest.mark.parametrize("seed", range(8))
def test_generated_workflows(seed: int) -> None:
    program = compile_sources(random_program(Random(seed), 12)).program
    assert program is not None
    for facet in program.facets:
        graph = simplified(build_graph(program, facet))
        check_layout(graph, lay_out(graph))


def test_a_long_chain() -> None:
    nodes = tuple(Node(f"n{number}", "event", f"s{number}", "F") for number in range(1500))
    edges = tuple(Edge(one.id, other.id, "data") for one, other in pairwise(nodes))
    graph = Graph("w", Cluster("w", "workflow", "w", nodes), edges)
    layout = lay_out(graph)
    assert layout.boxes["n1499"].y > layout.boxes["n1498"].y


def test_a_chain_is_straight() -> None:
    nodes = tuple(Node(f"n{number}", "event", "same", "F") for number in range(5))
    edges = tuple(Edge(one.id, other.id, "data") for one, other in pairwise(nodes))
    layout = lay_out(Graph("w", Cluster("w", "workflow", "w", nodes), edges))
    assert len({box.x for box in layout.boxes.values()}) == 1


def test_layers() -> None:
    edges = [("a", "b"), ("b", "c"), ("a", "c"), ("d", "c")]
    assert layers(["c", "b", "a", "d"], edges) == {"a": 0, "b": 1, "d": 0, "c": 2}


def test_a_circle_does_not_hang() -> None:
    assert set(layers(["a", "b"], [("a", "b"), ("b", "a")])) == {"a", "b"}
