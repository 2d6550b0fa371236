"""Graphs as JSON, for programs that draw them in their own way.

{"version": 1, "workflow": "shop.Order", "items": [item, ...],
 "edges": [{"source": id, "target": id, "kind": "data"}, ...]}

An item is a node, {"id", "kind", "name", "detail"}, or a cluster, {"id", "kind", "label", "items"}.
"""

from __future__ import annotations

import json

from afl.cli.graph.model import Graph, Item, Node
from afl.lang.diagnostics.display import without_surrogates


def to_json_text(graph: Graph) -> str:
    """The text of a JSON file."""
    value = {
        "version": 1,
        "workflow": graph.name,
        "items": [_item(item) for item in graph.root.items],
        "edges": [
            {"source": edge.source, "target": edge.target, "kind": edge.kind}
            for edge in graph.edges
        ],
    }
    return without_surrogates(json.dumps(value, indent=2, ensure_ascii=False)) + "\n"


def _item(item: Item) -> dict[str, object]:
    if isinstance(item, Node):
        return {"id": item.id, "kind": item.kind, "name": item.name, "detail": item.detail}
    return {
        "id": item.id,
        "kind": item.kind,
        "label": item.label,
        "items": [_item(inner) for inner in item.items],
    }
