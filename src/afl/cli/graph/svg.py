"""Graphs as SVG, in light and dark, without any program but this one."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import pairwise

from afl.cli.graph.geometry import Box, Lane
from afl.cli.graph.icons import ICONS
from afl.cli.graph.layout import lay_out
from afl.cli.graph.metrics import (
    ICON_ROOM,
    MARGIN,
    PADDING,
    shortened,
)
from afl.cli.graph.model import Cluster, Edge, Graph, Item, Node, simplified
from afl.cli.graph.style import STYLE
from afl.lang.diagnostics.display import without_surrogates

_ARROW_ROOM = 6


def to_svg(graph: Graph) -> str:
    """The text of an SVG file."""
    return "".join(f"{line}\n" for line in _Drawing(graph).lines())


class _Drawing:
    def __init__(self, graph: Graph) -> None:
        self._graph = simplified(graph)
        self._layout = lay_out(self._graph)

    def lines(self) -> Iterator[str]:
        width = self._layout.width + 2 * MARGIN
        height = self._layout.height + 2 * MARGIN
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(width)}" height="{_n(height)}"'
            f' viewBox="{-MARGIN} {-MARGIN} {_n(width)} {_n(height)}" role="img">'
        )
        yield f"<title>{_text(f'workflow {self._graph.name}')}</title>"
        yield f"<style>{STYLE}</style>"
        yield from _markers()
        yield (
            f'<rect class="page" x="{-MARGIN}" y="{-MARGIN}"'
            f' width="{_n(width)}" height="{_n(height)}"/>'
        )
        yield f'<text class="heading" x="{PADDING}" y="20">{_text(self._graph.name)}</text>'
        # clusters below, arrows over them, then boxes and titles
        yield from self._clusters(self._graph.root)
        for index, edge in enumerate(self._graph.edges):
            yield _arrow(edge, self._layout.ways[index])
        yield from self._titles(self._graph.root)
        for item in self._graph.root.items:
            yield from self._nodes(item)
        yield "</svg>"

    def _clusters(self, cluster: Cluster) -> Iterator[str]:
        for item in cluster.items:
            if isinstance(item, Cluster):
                box = self._layout.boxes[item.id]
                yield f'<rect class="cluster {item.kind}" {_frame(box)} rx="10"/>'
                yield from self._clusters(item)

    def _titles(self, cluster: Cluster) -> Iterator[str]:
        for item in cluster.items:
            if isinstance(item, Cluster):
                box = self._layout.boxes[item.id]
                yield (
                    f'<text class="title {item.kind}" x="{_n(box.x + 12)}" y="{_n(box.y + 20)}">'
                    f"{_text(shortened(item.label))}<title>{_text(item.label)}</title></text>"
                )
                yield from self._titles(item)

    def _nodes(self, item: Item) -> Iterator[str]:
        if isinstance(item, Cluster):
            for inner in item.items:
                yield from self._nodes(inner)
            return
        yield from _node(item, self._layout.boxes[item.id])


def _node(node: Node, box: Box) -> Iterator[str]:
    radius = box.height / 2 if node.kind in ("yield", "empty") else 8
    tooltip = f"{node.name}: {node.detail}" if node.detail else node.name
    yield f'<g class="node {node.kind}"><title>{_text(tooltip)}</title>'
    yield f'<rect {_frame(box)} rx="{_n(radius)}"/>'
    middle = box.y + box.height / 2
    yield (
        f'<path class="icon" transform="translate({_n(box.x + 10)} {_n(middle - 8)})"'
        f' d="{ICONS[node.kind]}"/>'
    )
    x = _n(box.x + ICON_ROOM)
    name = _text(shortened(node.name))
    if node.detail:
        detail = _text(shortened(node.detail))
        yield f'<text class="name" x="{x}" y="{_n(middle - 4)}">{name}</text>'
        yield f'<text class="detail" x="{x}" y="{_n(middle + 13)}">{detail}</text>'
    else:
        yield f'<text class="name" x="{x}" y="{_n(middle + 4.5)}">{name}</text>'
    yield "</g>"


def _arrow(edge: Edge, way: tuple[Lane, ...]) -> str:
    """Straight through each lane, and an S from one lane to the next."""
    first, last = way[0], way[-1]
    parts = [f"M{_n(first.x)} {_n(first.top)}"]
    for lane, following in pairwise(way):
        end = following.top - (_ARROW_ROOM if following is last else 0)
        if end <= lane.bottom:
            # straight on from the border of a cluster to its first layer
            parts.append(f"V{_n(end)}")
            continue
        parts.append(f"V{_n(lane.bottom)}")
        half = (lane.bottom + end) / 2
        parts.append(
            f"C{_n(lane.x)} {_n(half)} {_n(following.x)} {_n(half)} {_n(following.x)} {_n(end)}"
        )
    if last.bottom > last.top:
        parts.append(f"V{_n(last.bottom - _ARROW_ROOM)}")
    return f'<path class="edge {edge.kind}" marker-end="url(#{edge.kind})" d="{"".join(parts)}"/>'


def _markers() -> Iterator[str]:
    yield "<defs>"
    for kind in ("data", "after", "catch"):
        yield (
            f'<marker id="{kind}" class="{kind}" viewBox="0 0 8 8" refX="2" refY="4"'
            ' markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
            '<path d="M0 0.5L8 4L0 7.5z"/></marker>'
        )
    yield "</defs>"


def _frame(box: Box) -> str:
    return f'x="{_n(box.x)}" y="{_n(box.y)}" width="{_n(box.width)}" height="{_n(box.height)}"'


def _text(text: str) -> str:
    """Text that XML can hold."""
    clean = without_surrogates(text)
    return escape("".join(char if char.isprintable() else "\ufffd" for char in clean))


def _n(number: float) -> str:
    """A tenth of a pixel is as exact as anyone sees."""
    return f"{number:.1f}".removesuffix(".0")
