"""The MCP server of examples/review, whose tool first has an effect outside.

python -m tests.chaos.review_mcp SINK_PORT
"""

from __future__ import annotations

import sys
from runpy import run_path

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations

from tests.chaos.review_handlers import CHECK, EXAMPLE
from tests.chaos.sink import SinkClient

server = MCPServer("style")
_example = run_path(str(EXAMPLE / "style_server.py"))
_sink = SinkClient(int(sys.argv[1]))


@server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)
def check(text: str, context: Context) -> str:
    """Finds blanks at the ends of lines, tabs, and lines of more than 100 characters."""
    key = dict(context.request_context.meta or {})["afl/idempotencyKey"]
    _sink.effect(str(key), CHECK, "style", 0)
    return str(_example["check"](text))


if __name__ == "__main__":
    server.run("stdio")
