"""The connections of one process to its MCP servers, shared by all its turns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import timedelta
from types import TracebackType
from typing import Self, cast

from mcp import Client
from mcp_types import CallToolResult, RequestParamsMeta

from afl.kernel.model import Json
from afl.turns.mcp.config import McpServer
from afl.turns.mcp.connection import Connection
from afl.turns.mcp.content import ToolAnswer, answer_of
from afl.turns.mcp.errors import (
    McpError,
    McpServerGone,
    McpTimeout,
    McpUnreachable,
    UnknownMcpTool,
)
from afl.turns.mcp.pinning import ToolDefinition
from afl.turns.model import Limits

#: The key under which a server finds what makes two calls the same, in the call's `_meta`.
IDEMPOTENCY_KEY = "afl/idempotencyKey"


class McpPool:
    """Connects to servers when they are first used, and again when they were lost.

    Use it on one loop, and close it there: closing ends the programs that it has started.
    """

    def __init__(
        self,
        servers: Iterable[McpServer],
        environ: Mapping[str, str],
        *,
        max_result_bytes: int = Limits().result_bytes,
    ) -> None:
        self._servers = {server.name: server for server in servers}
        self._environ = environ
        self._max_result_bytes = max_result_bytes
        self._connections: dict[str, Connection] = {}
        self._retired: list[Connection] = []

    @property
    def servers(self) -> tuple[McpServer, ...]:
        return tuple(self._servers.values())

    async def list_tools(self, server: str) -> tuple[ToolDefinition, ...]:
        """The tools of a server that may be used. What it said is remembered for a minute.

        Raises `McpError`, and `ConfigError` if a variable that the server needs is not set.
        """
        settings = self._settings(server)
        connection = await self._connect(settings)
        try:
            tools = await connection.list_tools()
        except McpError as error:
            # nothing was asked of a tool yet, so a fresh connection may be tried
            self._drop(settings, connection)
            if isinstance(error, McpServerGone | McpTimeout):
                raise McpUnreachable(error.message) from error
            raise
        return tuple(tool for tool in tools if settings.allows(tool.name))

    async def find_tool(self, server: str, tool: str) -> ToolDefinition:
        """A tool that may be used. Raises `UnknownMcpTool`, and as `list_tools`."""
        for definition in await self.list_tools(server):
            if definition.name == tool:
                return definition
        raise UnknownMcpTool(
            f"MCP server {server} has no tool `{tool}`, or `tools` in [mcp.{server}] does not name "
            "it; `afl mcp tools` shows those that there are."
        )

    async def call_tool(
        self,
        server: str,
        tool: str,
        arguments: dict[str, Json],
        *,
        key: str,
        timeout: timedelta | None = None,
    ) -> ToolAnswer:
        """Calls a tool once. The key is the same whenever the same call is made again.

        Raises `McpError`: `McpUnreachable` if nothing was sent; `McpServerGone` or `McpTimeout` if
        nobody knows what was done. An error of the tool itself is an answer.
        """
        settings = self._settings(server)
        if not settings.allows(tool):
            raise UnknownMcpTool(f"`tools` in [mcp.{server}] does not name `{tool}`; add it there.")

        meta = cast(RequestParamsMeta, {IDEMPOTENCY_KEY: key})

        async def ask(client: Client) -> CallToolResult:
            return await client.call_tool(tool, arguments, meta=meta)

        connection = await self._connect(settings)
        try:
            result = await connection.call(ask, timeout or settings.timeout)
        except (McpServerGone, McpUnreachable):
            self._drop(settings, connection)
            raise
        return answer_of(
            result.model_dump(mode="json", by_alias=True, exclude_none=True),
            self._max_result_bytes,
        )

    async def close(self) -> None:
        """Closes all connections and ends the programs of servers. It may be used again."""
        closing = [*self._connections.values(), *self._retired]
        self._connections.clear()
        self._retired.clear()
        await asyncio.gather(*(connection.close() for connection in closing))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def _settings(self, server: str) -> McpServer:
        settings = self._servers.get(server)
        if settings is None:
            raise UnknownMcpTool(f"There is no MCP server {server} here; add a [mcp.{server}].")
        return settings

    async def _connect(self, server: McpServer) -> Connection:
        connection = self._connections.get(server.name)
        if connection is None or not connection.is_usable:
            if connection is not None:
                self._drop(server, connection)
            # noted before anything is awaited, so that others find it instead of making another
            connection = self._connections[server.name] = Connection(server, self._environ)
        try:
            await connection.wait_until_open()
        except McpError:
            self._drop(server, connection)
            raise
        return connection

    def _drop(self, server: McpServer, connection: Connection) -> None:
        """Makes the next call open a new connection; this one closes when it is idle."""
        if self._connections.get(server.name) is connection:
            del self._connections[server.name]
        connection.retire()
        self._retired = [one for one in {*self._retired, connection} if not one.is_closed]
