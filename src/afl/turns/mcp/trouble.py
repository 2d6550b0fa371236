"""What the errors of the SDK and of HTTP mean to whoever called a tool. Pure."""

from __future__ import annotations

from mcp import InputRequiredRoundsExceededError, MCPError
from mcp_types import CONNECTION_CLOSED, METHOD_NOT_FOUND
from pydantic import ValidationError

from afl.turns.mcp.config import McpServer
from afl.turns.mcp.errors import McpError, McpProtocolError, McpServerGone, McpUnreachable
from afl.turns.mcp.http import HttpReport

#: What a call through the SDK can raise. `RuntimeError` is an answer against its own schema.
OF_CALLS = (MCPError, ValidationError, InputRequiredRoundsExceededError, RuntimeError, OSError)

_NO_ENTRY = (401, 403)
_NOT_FOUND = 404
_TOO_MANY = 429
#: How the SDK begins its message about an event that is too long or none.
_BROKEN_STREAM = "SSE stream failed"


def of_call(server: McpServer, error: Exception, report: HttpReport, gone: str) -> McpError:
    """The error of a call that the SDK could not make, or that the server has refused."""
    if report.error is not None:
        message = f"{gone} ({type(report.error).__name__}: {report.error})"
        return McpServerGone(message) if report.was_sent else McpUnreachable(message)
    by_status = None if report.status is None else _of_status(server, report.status)
    if by_status is not None:
        return by_status
    if isinstance(error, MCPError):
        if report.status == _NOT_FOUND and error.code != METHOD_NOT_FOUND:
            return McpUnreachable(f"MCP server {server.name} has started anew.")
        if error.code == CONNECTION_CLOSED and not error.message.startswith(_BROKEN_STREAM):
            return McpServerGone(gone)
        return McpProtocolError(
            f"MCP server {server.name} refused the call: {error.message} (code {error.code})."
        )
    if isinstance(error, OSError):
        return McpServerGone(gone)
    return McpProtocolError(f"MCP server {server.name} broke the protocol: {error}")


def not_opened(
    server: McpServer, cause: BaseException | None, report: HttpReport, last_words: str
) -> McpError:
    """The error of a connection that could not be opened."""
    if report.status in _NO_ENTRY:
        return _no_entry(server, report.status)
    why = report.error or cause or "the connection was closed before it was open"
    if isinstance(cause, FileNotFoundError | PermissionError):
        return McpUnreachable(
            f"MCP server {server.name} cannot be started here: `{server.command}` is not a program "
            f"that can be run; install it, or correct `command` in [mcp.{server.name}]."
        )
    if server.command is not None:
        said = f"It said: {last_words}" if last_words else f"{why}"
        return McpUnreachable(
            f"MCP server {server.name} (`{server.command}`) did not start. {said}"
        )
    if report.status is not None:
        return _of_status(server, report.status) or McpProtocolError(
            f"{server.url} answers, with HTTP {report.status}, but not as an MCP server does: "
            f"{cause}. Look at `url` in [mcp.{server.name}]."
        )
    return McpUnreachable(f"MCP server {server.name} cannot be reached at {server.url}: {why}")


def gone(server: McpServer, last_words: str) -> str:
    """What is said of a server that was lost."""
    said = f" It said: {last_words}" if last_words else ""
    return f"MCP server {server.name} was lost during a call.{said}"


def _of_status(server: McpServer, status: int) -> McpError | None:
    """What an HTTP status says; None where the answer in it says more."""
    if status in _NO_ENTRY:
        return _no_entry(server, status)
    if status == _TOO_MANY:
        return McpUnreachable(f"MCP server {server.name} takes no calls now (HTTP {status}).")
    if status >= 500:
        return McpServerGone(f"MCP server {server.name} failed during a call (HTTP {status}).")
    return None


def _no_entry(server: McpServer, status: int) -> McpProtocolError:
    return McpProtocolError(
        f"MCP server {server.name} lets nobody in without other credentials (HTTP {status}); look "
        f"at `headers` in [mcp.{server.name}] and at the variables that they name."
    )
