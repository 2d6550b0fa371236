"""How large things are in a drawing."""

from __future__ import annotations

from afl.cli.graph.model import Cluster, Node
from afl.lang.diagnostics.display import cells

NAME_SIZE = 13
DETAIL_SIZE = 11
TITLE_SIZE = 12

NODE_HEIGHT = 44
PILL_HEIGHT = 38
ICON_ROOM = 32
BOX_GAP = 24
LANE_GAP = 10
LANE_WIDTH = 4
LAYER_GAP = 46
PADDING = 18
TITLE_HEIGHT = 20
MARGIN = 12

_MIN_WIDTH = 96
_END_ROOM = 16
_MAX_LABEL = 48
#: The advance of a character of a monospaced font, as a part of its size.
_ADVANCE = 0.605


def text_width(text: str, size: int) -> float:
    """The width of a text in a monospaced font."""
    return cells(text)[1][-1] * size * _ADVANCE


def shortened(text: str) -> str:
    """A label that does not stretch the drawing; the whole text is in its tooltip."""
    text = " ".join(text.split())
    return text if len(text) <= _MAX_LABEL else f"{text[: _MAX_LABEL - 1]}…"


def node_size(node: Node) -> tuple[float, float]:
    """Width and height of a node."""
    widest = max(
        text_width(shortened(node.name), NAME_SIZE), text_width(shortened(node.detail), DETAIL_SIZE)
    )
    height = NODE_HEIGHT if node.detail else PILL_HEIGHT
    return max(widest + ICON_ROOM + _END_ROOM, _MIN_WIDTH), height


def title_width(cluster: Cluster) -> float:
    """The room that the title of a cluster needs."""
    return text_width(shortened(cluster.label), TITLE_SIZE)
