"""The tools of MCP servers, and whether they are what somebody has agreed to.

Needs the extra `agents`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from afl.base.errors import ConfigError
from afl.turns.mcp.client import McpPool
from afl.turns.mcp.config import McpServer
from afl.turns.mcp.errors import McpError, UnknownMcpTool
from afl.turns.mcp.pinning import ToolDefinition, Verdict, compare, definition_hash
from afl.turns.mcp.tools import effect_of
from afl.turns.ports import Pins

_WORDS = {Verdict.NEW: "new", Verdict.SAME: "pinned", Verdict.CHANGED: "changed"}


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool of a server, as it is now."""

    server: str
    name: str
    description: str
    #: pure, idempotent, keyed or irreversible
    effect: str
    #: `new`, `pinned`, or `changed` since somebody agreed to it
    pin: str
    hash: str

    @property
    def target(self) -> str:
        return f"{self.server}/{self.name}"


@dataclass(frozen=True, slots=True)
class Offers:
    """What servers offer, and why those do not that could not be asked."""

    tools: tuple[OfferedTool, ...]
    problems: Mapping[str, str]


class McpShelf:
    """The MCP servers of a file, asked once for each command."""

    def __init__(
        self, servers: Sequence[McpServer], pins: Pins, environ: Mapping[str, str]
    ) -> None:
        self._servers = {server.name: server for server in servers}
        self._pins = pins
        self._environ = environ

    def tools(self, server: str | None = None) -> Offers:
        """The tools of one server, or of all. One that does not answer keeps nobody else quiet.

        Raises:
            UnknownMcpTool: no such server is set up here.
        """
        names = list(self._servers) if server is None else [self._known(server).name]
        return asyncio.run(self._ask(names))

    def trust(self, target: str) -> OfferedTool:
        """Agrees to a tool, `server/tool`, as it is now.

        Raises:
            UnknownMcpTool: there is no such tool. McpError: its server does not answer.
        """
        server, _, name = target.partition("/")
        self._known(server)
        definition = asyncio.run(self._find(server, name))
        self._pins.set_pin(server, name, definition_hash(definition))
        return self._offered(definition)

    async def _ask(self, names: Sequence[str]) -> Offers:
        tools: list[OfferedTool] = []
        problems: dict[str, str] = {}
        async with McpPool(self._servers.values(), self._environ) as pool:
            for name in names:
                try:
                    tools += [self._offered(each) for each in await pool.list_tools(name)]
                except (McpError, ConfigError) as error:
                    problems[name] = error.message
        return Offers(tuple(tools), problems)

    async def _find(self, server: str, tool: str) -> ToolDefinition:
        async with McpPool(self._servers.values(), self._environ) as pool:
            return await pool.find_tool(server, tool)

    def _offered(self, definition: ToolDefinition) -> OfferedTool:
        current = definition_hash(definition)
        pinned = self._pins.get_pin(definition.server, definition.name)
        return OfferedTool(
            definition.server,
            definition.name,
            definition.description,
            effect_of(definition, self._servers[definition.server]),
            _WORDS[compare(pinned, current)],
            current,
        )

    def _known(self, server: str) -> McpServer:
        found = self._servers.get(server)
        if found is None:
            known = ", ".join(sorted(self._servers)) or "none"
            raise UnknownMcpTool(f"There is no MCP server {server} here; those are {known}.")
        return found
