"""Places for the boxes of a graph and ways for its arrows.

Every cluster is laid out by itself: its items go into layers by what they wait for, the layers are
sorted so that few arrows cross, and the boxes move sideways towards what they are joined with. An
arrow that passes a layer, or that goes on outside of the cluster, gets a narrow lane in each layer
it passes. So arrows bend only in the gaps between layers, and no arrow runs over a box.
"""

from __future__ import annotations

from afl.cli.graph.geometry import Box, Lane, Layout
from afl.cli.graph.layers import siblings
from afl.cli.graph.level import Inside, Traffic, lay_out_level
from afl.cli.graph.metrics import node_size
from afl.cli.graph.model import Cluster, Graph, Node, clusters


def lay_out(graph: Graph) -> Layout:
    """Find a place for every item and a way for every edge."""
    return _Plan(graph).lay_out()


class _Plan:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._traffic = {cluster.id: Traffic() for cluster in clusters(graph.root)}
        self._insides: dict[str, Inside] = {}
        self._boxes: dict[str, Box] = {}
        self._ways: dict[int, list[Lane]] = {index: [] for index in range(len(graph.edges))}
        parents = graph.parents()
        for index, edge in enumerate(graph.edges):
            source, target = siblings(graph, parents, edge.source, edge.target)
            common = parents[source]
            self._traffic[common].inner.append((index, source, target))
            item = edge.source
            while parents[item] != common:
                self._traffic[parents[item]].leaving.append((index, item))
                item = parents[item]
            item = edge.target
            while parents[item] != common:
                self._traffic[parents[item]].entering.append((index, item))
                item = parents[item]

    def lay_out(self) -> Layout:
        inside = self._measure(self._graph.root)
        self._place(self._graph.root, 0.0, 0.0)
        # the lanes of one arrow were found cluster by cluster; it runs through them downwards
        ways = {
            index: tuple(sorted(lanes, key=lambda lane: lane.top))
            for index, lanes in self._ways.items()
        }
        return Layout(inside.width, inside.height, self._boxes, ways)

    def _measure(self, cluster: Cluster) -> Inside:
        """Inner clusters first: a cluster is as large as what it holds."""
        sizes = {}
        for item in cluster.items:
            if isinstance(item, Node):
                sizes[item.id] = node_size(item)
            else:
                inner = self._measure(item)
                sizes[item.id] = inner.width, inner.height
        inside = lay_out_level(cluster, self._traffic[cluster.id], sizes, self._insides)
        self._insides[cluster.id] = inside
        return inside

    def _place(self, cluster: Cluster, x: float, y: float) -> None:
        """From coordinates of the clusters to those of the picture."""
        inside = self._insides[cluster.id]
        for index, lanes in inside.lanes.items():
            self._ways[index] += [lane.moved(x, y) for lane in lanes]
        for item in cluster.items:
            box = inside.boxes[item.id]
            self._boxes[item.id] = Box(x + box.x, y + box.y, box.width, box.height)
            if isinstance(item, Cluster):
                self._place(item, x + box.x, y + box.y)
