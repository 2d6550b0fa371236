"""Asking a server for its tools."""

from __future__ import annotations

from mcp import Client
from mcp_types import Tool, ToolAnnotations

from afl.turns.mcp.errors import McpProtocolError
from afl.turns.mcp.pinning import ToolDefinition

_MAX_PAGES = 100
_MAX_TOOLS = 2_000


async def all_tools(client: Client, server: str) -> tuple[ToolDefinition, ...]:
    """The tools of a server, from all pages. Raises `McpProtocolError`."""
    found: dict[str, ToolDefinition] = {}
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            if tool.name in found:
                raise McpProtocolError(
                    f"MCP server {server} names two tools `{tool.name}`, so nobody can tell which "
                    "one was agreed to; tell whoever made the server."
                )
            found[tool.name] = _definition(server, tool)
        cursor = page.next_cursor
        if cursor is None:
            return tuple(found.values())
        if len(found) > _MAX_TOOLS:
            break
    raise McpProtocolError(f"MCP server {server} does not come to an end with its tools.")


def _definition(server: str, tool: Tool) -> ToolDefinition:
    hints = tool.annotations or ToolAnnotations()
    return ToolDefinition(
        server=server,
        name=tool.name,
        description=tool.description or "",
        schema=tool.input_schema,
        read_only=hints.read_only_hint,
        destructive=hints.destructive_hint,
        idempotent=hints.idempotent_hint,
    )
