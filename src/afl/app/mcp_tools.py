"""The MCP servers of a process, on an event loop of their own: for briefs, which are made in
threads, and for the calls of tools, which are served on the loop of a turn worker."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from afl.kernel.model import Claim, Close
from afl.turns.mcp.client import McpPool
from afl.turns.mcp.config import McpServer
from afl.turns.mcp.pinning import check_pin
from afl.turns.mcp.serving import McpServing
from afl.turns.mcp.tools import to_tool
from afl.turns.model import Tool
from afl.turns.ports import Pins

T = TypeVar("T")


class McpThread:
    """`offers.McpTools` and `ports.Server`. Its thread lasts until it is closed."""

    def __init__(
        self, servers: Sequence[McpServer], pins: Pins, environ: Mapping[str, str]
    ) -> None:
        self._servers = {server.name: server for server in servers}
        self._pins = pins
        self._pool = McpPool(servers, environ)
        self._serving = McpServing(self._pool, pins)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="afl-mcp", daemon=True)
        self._thread.start()

    def find(self, server: str, tool: str) -> Tool:
        """The tool as the model sees it. One that is used for the first time is trusted."""
        definition = self._run(self._pool.find_tool(server, tool))
        check_pin(self._pins, definition)
        return to_tool(definition, self._servers[server])

    def names(self) -> tuple[str, ...]:
        return self._serving.names()

    async def serve(self, claim: Claim) -> Close:
        # cancelling this cancels what the other loop does
        return await asyncio.wrap_future(
            asyncio.run_coroutine_threadsafe(self._serving.serve(claim), self._loop)
        )

    def close(self) -> None:
        """Ends the programs of servers, and the thread."""
        self._run(self._pool.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
