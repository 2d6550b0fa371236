"""The looks of an SVG: colours in light and dark, fonts and strokes."""

from __future__ import annotations

from afl.cli.graph.metrics import DETAIL_SIZE, NAME_SIZE, TITLE_SIZE

_ACCENTS = {
    "event": ("#0969da", "#4493f8"),
    "prompt": ("#8250df", "#ab7df8"),
    "human": ("#bc4c00", "#f0883e"),
    "facet": ("#59636e", "#9198a1"),
    "workflow": ("#1a7f37", "#3fb950"),
    "schema": ("#0e7490", "#39c5cf"),
    "script": ("#9a6700", "#d29922"),
    "yield": ("#59636e", "#9198a1"),
    "empty": ("#818b98", "#656c76"),
}

_FONTS = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace'

_BASE = f"""
svg {{ color: #1f2328; font-family: {_FONTS}; }}
text {{ fill: currentColor; }}
.page {{ fill: #ffffff; }}
.heading {{ font-size: 14px; font-weight: 600; }}
.cluster {{ fill: #818b98; fill-opacity: 0.07; stroke: #818b98; stroke-opacity: 0.55; }}
.cluster.case, .cluster.block {{ stroke-dasharray: 2 4; }}
.cluster.catch {{ fill: #cf222e; stroke: #cf222e; }}
.title {{ font-size: {TITLE_SIZE}px; fill: #59636e; }}
.title {{ paint-order: stroke; stroke: #f6f8fa; stroke-width: 4px; stroke-linejoin: round; }}
.title.catch {{ fill: #cf222e; }}
.node rect {{ fill: #ffffff; stroke-width: 1.5px; }}
.node.empty rect, .node.yield rect {{ stroke-dasharray: 3 3; }}
.name {{ font-size: {NAME_SIZE}px; font-weight: 600; }}
.detail {{ font-size: {DETAIL_SIZE}px; fill: #59636e; }}
.icon {{ fill: none; stroke-width: 1.5px; stroke-linecap: round; stroke-linejoin: round; }}
.edge {{ fill: none; stroke-width: 1.5px; stroke: #818b98; }}
.edge.after {{ stroke-dasharray: 6 4; }}
.edge.catch {{ stroke: #cf222e; stroke-dasharray: 1.5 3.5; stroke-linecap: round; }}
marker path {{ fill: #818b98; }}
marker.catch path {{ fill: #cf222e; }}
"""

_DARK = """
svg { color: #e6edf3; }
.page { fill: #0d1117; }
.title { fill: #9198a1; stroke: #151b23; }
.title.catch { fill: #ff7b72; }
.cluster.catch { fill: #f85149; stroke: #f85149; }
.node rect { fill: #151b23; }
.detail { fill: #9198a1; }
.edge.catch { stroke: #f85149; }
marker.catch path { fill: #f85149; }
"""


def _accents(shade: int) -> str:
    return "\n".join(
        f".node.{kind} rect, .node.{kind} .icon {{ stroke: {shades[shade]}; }}"
        for kind, shades in _ACCENTS.items()
    )


STYLE = f"{_BASE}{_accents(0)}\n@media (prefers-color-scheme: dark) {{{_DARK}{_accents(1)}\n}}\n"
