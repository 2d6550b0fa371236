"""What can go wrong with MCP tools. That a tool itself says no is not among it: that is an answer.

TurnError
└── McpError
    ├── UnknownMcpTool         no such server or tool here
    ├── McpDefinitionChanged   the tool is not what somebody has agreed to
    ├── McpProtocolError       the server refuses the request, or breaks the protocol
    ├── McpTimeout             no answer in time; whether the tool has done anything is not known
    ├── McpUnreachable         the call was not sent: safe to try again, whatever the tool does
    └── McpServerGone          lost after the call was sent; whether it was done is not known
"""

from __future__ import annotations

from afl.turns.errors import TurnError


class McpError(TurnError):
    """An MCP tool could not be called."""

    code = "turns.mcp"


class UnknownMcpTool(McpError):
    """There is no such MCP server or tool here; `afl mcp tools` shows those that there are."""

    code = "turns.mcp_unknown"


class McpDefinitionChanged(McpError):
    """The definition of an MCP tool has changed since somebody agreed to it."""

    code = "turns.mcp_changed"


class McpProtocolError(McpError):
    """An MCP server refused the request, or broke the protocol."""

    code = "turns.mcp_protocol"


class McpTimeout(McpError):
    """An MCP server did not answer in time; the tool may have done its work all the same."""

    code = "turns.mcp_timeout"


class McpUnreachable(McpError):
    """An MCP server cannot be reached; nothing was sent to the tool."""

    code = "turns.mcp_unreachable"
    retryable = True


class McpServerGone(McpError):
    """An MCP server was lost while it was called; the tool may have done its work."""

    code = "turns.mcp_gone"
    retryable = True
