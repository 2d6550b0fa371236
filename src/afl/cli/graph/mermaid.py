"""Graphs as Mermaid flowcharts, which GitHub and many editors draw."""

from __future__ import annotations

from collections.abc import Iterator

from afl.cli.graph.model import Cluster, Graph, Item, Node, NodeKind, clusters, simplified

_SHAPES: dict[NodeKind, tuple[str, str]] = {
    "event": ("[", "]"),
    "prompt": ("{{", "}}"),
    "human": ("[/", "/]"),
    "facet": ("(", ")"),
    "workflow": ("[[", "]]"),
    "schema": ("[(", ")]"),
    "script": (">", "]"),
    "yield": ("([", "])"),
    "empty": ("(", ")"),
}
_ARROWS = {"data": "-->", "after": "-.->", "catch": "-. fails .->"}
_STYLES = {
    "event": "stroke:#0969da",
    "prompt": "stroke:#8250df",
    "human": "stroke:#bf8700",
    "workflow": "stroke:#1a7f37",
    "yield": "stroke-dasharray:3 3",
}


def to_mermaid(graph: Graph) -> str:
    """The text of a Mermaid file."""
    return "".join(f"{line}\n" for line in _Writer(graph).lines())


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self._graph = simplified(graph)
        every = [item for cluster in clusters(graph.root) for item in cluster.items]
        # ids of Mermaid are plain words
        self._names = {item.id: f"n{number}" for number, item in enumerate(every)}
        self._nodes = [item for item in every if isinstance(item, Node)]

    def lines(self) -> Iterator[str]:
        yield "---"
        yield f'title: "{self._graph.name}"'
        yield "---"
        yield "flowchart TB"
        for item in self._graph.root.items:
            yield from self._item(item, "  ")
        for edge in self._graph.edges:
            arrow = _ARROWS[edge.kind]
            yield f"  {self._names[edge.source]} {arrow} {self._names[edge.target]}"
        for kind, style in _STYLES.items():
            members = [self._names[node.id] for node in self._nodes if node.kind == kind]
            if members:
                yield f"  classDef {kind} {style}"
                yield f"  class {','.join(members)} {kind}"

    def _item(self, item: Item, indent: str) -> Iterator[str]:
        name = self._names[item.id]
        if isinstance(item, Cluster):
            yield f'{indent}subgraph {name}["{_escape(item.label)}"]'
            for inner in item.items:
                yield from self._item(inner, f"{indent}  ")
            yield f"{indent}end"
            return
        opening, closing = _SHAPES[item.kind]
        label = f"<b>{_escape(item.name)}</b>"
        if item.detail:
            label += f"<br/>{_escape(item.detail)}"
        yield f'{indent}{name}{opening}"{label}"{closing}'


def _escape(text: str) -> str:
    """Mermaid knows Markdown and HTML; everything but plain text is written as a code."""
    return "".join(
        char if char.isalnum() or char in " .,_-=/()$:" else f"#{ord(char)};" for char in text
    )
