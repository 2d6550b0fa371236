"""Graphs as text for a terminal: first what starts first, one number for what starts at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from afl.cli.graph.layers import layers, siblings
from afl.cli.graph.model import Cluster, Graph, Item, Node
from afl.cli.unparse import step_name
from afl.lang.diagnostics.display import cells, safe

_BAR = "│ "


def to_text(graph: Graph) -> str:
    """The lines of a graph, each with its break."""
    writer = _Writer(graph)
    lines = [f"workflow {graph.name}", "", *writer.cluster(graph.root)]
    return "".join(f"{line.rstrip()}\n" for line in lines)


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._parents = graph.parents()
        self._inside: dict[str, list[tuple[str, str]]] = {}
        for edge in graph.edges:
            ends = siblings(graph, self._parents, edge.source, edge.target)
            self._inside.setdefault(self._parents[ends[0]], []).append(ends)

    def cluster(self, cluster: Cluster) -> Iterator[str]:
        """The items by their layers, in columns."""
        ids = [item.id for item in cluster.items]
        depth = layers(ids, self._inside.get(cluster.id, []))
        ordered = sorted(cluster.items, key=lambda item: depth[item.id])
        nodes = [item for item in ordered if isinstance(item, Node)]
        widths = [
            max((_width(part) for part in parts), default=0)
            for parts in zip(*(self._columns(node) for node in nodes), strict=True)
        ]
        number_width = len(str(max(depth.values()) + 1))
        before = -1
        for item in ordered:
            layer = depth[item.id]
            number = str(layer + 1) if layer != before else ""
            before = layer
            yield from self._item(item, f"{number:>{number_width}}", widths)

    def _item(self, item: Item, number: str, widths: Sequence[int]) -> Iterator[str]:
        waits = self._waits(item)
        if isinstance(item, Node):
            columns = self._columns(item)
            padded = [_pad(text, width) for text, width in zip(columns, widths, strict=True)]
            yield "  ".join([number, *padded, waits])
            return
        head = safe(item.label)
        yield f"{number}  {head}  {waits}" if waits else f"{number}  {head}"
        indent = " " * (len(number) + 2)
        for line in self.cluster(item):
            yield f"{indent}{_BAR}{line}"

    def _columns(self, node: Node) -> tuple[str, str, str]:
        if node.kind in ("yield", "empty"):
            word, _, owner = node.name.partition(" ")
            return (word, owner, node.detail) if node.kind == "yield" else (node.name, "", "")
        return node.name, node.kind, node.detail

    def _waits(self, item: Item) -> str:
        """What an item waits for; the label of a catch says it already."""
        arriving = [edge for edge in self._graph.edges if edge.target == item.id]
        parts = []
        for kind, word in (("data", "needs"), ("after", "after")):
            names = [step_name(edge.source) for edge in arriving if edge.kind == kind]
            if names:
                parts.append(f"{word} {', '.join(names)}")
        return "; ".join(parts)


def _width(text: str) -> int:
    return cells(text)[1][-1]


def _pad(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
