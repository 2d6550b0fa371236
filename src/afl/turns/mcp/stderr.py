"""What the program of an MCP server says on its stderr: its last words explain why it ended."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TextIO

_log = logging.getLogger("afl.mcp")
_KEPT = 2_000


class StderrTail(asyncio.Protocol):
    """The end of what was said; all of it goes to the log, at level debug."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._kept = b""
        self._ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self._kept = (self._kept + data)[-_KEPT:]
        _log.debug("MCP server %s: %s", self._server, data.decode("utf-8", "replace").rstrip())

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended.set()

    async def last_words(self, wait_seconds: float) -> str:
        """The last line, once the program has closed its stderr or the time is up."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), wait_seconds)
        lines = self._kept.decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


@asynccontextmanager
async def stderr_pipe(tail: StderrTail) -> AsyncGenerator[TextIO, None]:
    """A file to be given to a program as its stderr. Leave this when the program has ended."""
    read, write = os.pipe()
    with os.fdopen(write, "w") as inlet:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: tail, os.fdopen(read, "rb")
        )
        try:
            yield inlet
        finally:
            transport.close()
