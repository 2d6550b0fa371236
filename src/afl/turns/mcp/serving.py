"""What a worker runs for a claimed task `mcp:<server>`: check the pin, call, tell how it went."""

from __future__ import annotations

import asyncio

from afl.base.errors import AflError
from afl.kernel.model import Claim, Close, Json, Outcome
from afl.turns.errors import BadBrief
from afl.turns.mcp.client import McpPool
from afl.turns.mcp.content import ToolAnswer, storable
from afl.turns.mcp.errors import McpServerGone, McpTimeout
from afl.turns.mcp.pinning import check_pin, check_turn_pin
from afl.turns.model import MCP_NAME
from afl.turns.ports import Pins


class McpServing:
    """Serves the tools of MCP servers. A tool's own error is an answer; the rest are failures."""

    def __init__(self, pool: McpPool, pins: Pins) -> None:
        self._pool = pool
        self._pins = pins

    def names(self) -> tuple[str, ...]:
        return tuple(MCP_NAME.format(server=server.name) for server in self._pool.servers)

    async def serve(self, claim: Claim) -> Close:
        """Calls the tool once, and answers with how the task ends. Raises only if cancelled."""
        given = claim.task.input
        try:
            answer = await self._call(given)
        except McpTimeout as error:
            return Close(Outcome.TIMEOUT, error=_body(error))
        except AflError as error:
            return Close(Outcome.FAILED, error=_body(error), permanent=not _again(given, error))
        return Close(
            Outcome.SUCCESS, result={"content": answer.content, "is_error": answer.is_error}
        )

    async def _call(self, given: Json) -> ToolAnswer:
        match given:
            case {
                "server": str(server),
                "tool": str(tool),
                "arguments": dict(arguments),
                "key": str(key),
                "pin": None | str() as pin,
            }:
                definition = await self._pool.find_tool(server, tool)
                await asyncio.to_thread(check_pin, self._pins, definition)
                if isinstance(pin, str):
                    check_turn_pin(definition, pin)
                return await self._pool.call_tool(server, tool, arguments, key=key)
        raise BadBrief("This is not the task of an MCP tool: make it with `call_spec`.")


def _again(given: Json, error: AflError) -> bool:
    """Whether the same call may be made again: not if an effect that cannot be taken back may have
    been done."""
    irreversible = isinstance(given, dict) and given.get("effect") == "irreversible"
    return error.retryable and not (irreversible and isinstance(error, McpServerGone))


def _body(error: AflError) -> Json:
    return {
        "type": type(error).__name__,
        "code": error.code,
        "message": storable(error.message),
    }
