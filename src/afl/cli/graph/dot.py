"""Graphs in the language of Graphviz."""

from __future__ import annotations

from collections.abc import Iterator

from afl.cli.graph.model import Edge, Graph, Item, Node, NodeKind, clusters, simplified

_SHAPES: dict[NodeKind, str] = {
    "event": "box",
    "prompt": "hexagon",
    "human": "house",
    "facet": "box",
    "workflow": "component",
    "schema": "cylinder",
    "script": "note",
    "yield": "cds",
    "empty": "plaintext",
}
_EDGE_STYLES = {
    "data": "",
    "after": "style=dashed",
    "catch": 'style=dotted, color="#cf222e", label="fails"',
}


def to_dot(graph: Graph) -> str:
    """The text of a `.dot` file."""
    return "".join(f"{line}\n" for line in _Writer(graph).lines())


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self._graph = simplified(graph)
        self._clusters = {cluster.id: cluster for cluster in clusters(graph.root)}

    def lines(self) -> Iterator[str]:
        yield f"digraph {_quote(self._graph.name)} {{"
        yield f"  label={_quote(self._graph.name)}; labelloc=t; compound=true; rankdir=TB;"
        yield '  fontname="sans-serif"; node [fontname="sans-serif"]; edge [fontname="sans-serif"];'
        for item in self._graph.root.items:
            yield from self._item(item, "  ")
        for edge in self._graph.edges:
            yield self._edge(edge)
        yield "}"

    def _item(self, item: Item, indent: str) -> Iterator[str]:
        if isinstance(item, Node):
            label = _quote(f"{item.name}\n{item.detail}" if item.detail else item.name)
            style = ', style="rounded"' if item.kind == "facet" else ""
            yield f"{indent}{_quote(item.id)} [label={label}, shape={_SHAPES[item.kind]}{style}];"
            return
        yield f"{indent}subgraph {_quote(_cluster_name(item.id))} {{"
        yield f"{indent}  label={_quote(item.label)}; labeljust=l; style=rounded;"
        for inner in item.items:
            yield from self._item(inner, f"{indent}  ")
        yield f"{indent}}}"

    def _edge(self, edge: Edge) -> str:
        """Graphviz joins nodes only; at a cluster the edge is cut at its border."""
        attributes = [_EDGE_STYLES[edge.kind]] if _EDGE_STYLES[edge.kind] else []
        if edge.source in self._clusters:
            attributes.append(f"ltail={_quote(_cluster_name(edge.source))}")
        if edge.target in self._clusters:
            attributes.append(f"lhead={_quote(_cluster_name(edge.target))}")
        suffix = f" [{', '.join(attributes)}]" if attributes else ""
        source, target = self._node(edge.source, last=True), self._node(edge.target, last=False)
        return f"  {_quote(source)} -> {_quote(target)}{suffix};"

    def _node(self, id: str, *, last: bool) -> str:
        while id in self._clusters:
            id = self._clusters[id].items[-1 if last else 0].id
        return id


def _cluster_name(id: str) -> str:
    return f"cluster {id}"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
