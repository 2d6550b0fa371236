"""Servers that speak the protocol of before: with a handshake, with sessions."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from afl.turns.mcp.client import McpPool
from afl.turns.mcp.config import McpServer
from afl.turns.mcp.content import ToolAnswer
from afl.turns.mcp.errors import McpUnreachable
from tests.turns.mcp.conftest import HttpProcess

OLDER = McpServer(
    "t", command=sys.executable, args=(str(Path(__file__).with_name("older_server.py")),)
)


def test_a_listing_is_remembered_until_the_server_tells_that_it_has_changed() -> None:
    async def scene() -> None:
        async with McpPool([OLDER], {}) as pool:
            first = await pool.list_tools("t")
            assert [tool.description for tool in first] == ["Called 0 times."]
            assert (await pool.list_tools("t"))[0] is first[0]
            assert await pool.call_tool("t", "count", {}, key="k") == ToolAnswer("1")
            assert [tool.description for tool in await pool.list_tools("t")] == ["Called 1 times."]

    asyncio.run(scene())


def test_a_server_that_has_lost_its_sessions_gets_a_new_one() -> None:
    async def scene(http: HttpProcess) -> None:
        async with McpPool([McpServer("t", url=http.url)], {}) as pool:
            assert await pool.call_tool("t", "add", {"a": 1, "b": 2}, key="k") == ToolAnswer("3")
            http.kill()
            await asyncio.to_thread(http.start)
            with pytest.raises(McpUnreachable, match="has started anew"):
                await pool.call_tool("t", "add", {"a": 1, "b": 2}, key="k")
            assert await pool.call_tool("t", "add", {"a": 1, "b": 2}, key="k") == ToolAnswer("3")

    with HttpProcess("sessions") as http:
        asyncio.run(scene(http.start()))
