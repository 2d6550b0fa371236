"""The icon of each kind of node: strokes in a square of 16 by 16."""

from __future__ import annotations

from afl.cli.graph.model import NodeKind

ICONS: dict[NodeKind, str] = {
    # a flash
    "event": "M9 1.5L3.5 9H8L7 14.5L12.5 7H8z",
    # a spark
    "prompt": (
        "M8 1.5C8.5 5.5 10.5 7.5 14.5 8C10.5 8.5 8.5 10.5 8 14.5"
        "C7.5 10.5 5.5 8.5 1.5 8C5.5 7.5 7.5 5.5 8 1.5z"
    ),
    # a person
    "human": "M8 8A3 3 0 1 0 8 2A3 3 0 0 0 8 8zM2.5 14C3 11 5 9.8 8 9.8S13 11 13.5 14",
    # a box
    "facet": "M8 1.8L13.8 4.8V11.2L8 14.2L2.2 11.2V4.8zM2.2 4.8L8 7.8L13.8 4.8M8 7.8V14.2",
    # a branch
    "workflow": "M3 2H7V6H3zM9 10H13V14H9zM5 6V12H9",
    # a table
    "schema": "M2 3H14V13H2zM2 6.3H14M6.5 6.3V13",
    # braces
    "script": (
        "M6 2.5C4 2.5 4.5 4 4.5 5.5S4 8 2.5 8C4 8 4.5 9 4.5 10.5S4 13.5 6 13.5"
        "M10 2.5C12 2.5 11.5 4 11.5 5.5S12 8 13.5 8C12 8 11.5 9 11.5 10.5S12 13.5 10 13.5"
    ),
    # out of a corner
    "yield": "M3 3V8.5H12.5M9 5L12.5 8.5L9 12",
    # a stroke
    "empty": "M4 8H12",
}
