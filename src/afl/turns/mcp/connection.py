"""One connection to an MCP server, owned by one asyncio task.

The SDK's contexts must be left by the task that entered them. So a task of its own opens a
connection, waits, and closes it; calls come from any other task of the same loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client import Transport
from mcp.client.session import IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation, ToolListChangedNotification

from afl.turns.mcp import listing, trouble
from afl.turns.mcp.config import McpServer, resolve
from afl.turns.mcp.errors import McpServerGone, McpTimeout, McpUnreachable
from afl.turns.mcp.http import MAX_BODY_BYTES, HttpReport, ReportingClient, report_of_call
from afl.turns.mcp.pinning import ToolDefinition
from afl.turns.mcp.stderr import StderrTail, stderr_pipe

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

T = TypeVar("T")

#: How long a server may take to be ready, and to tell its tools.
OPEN_SECONDS = 30.0
#: A listing is asked for again after this time: not every server tells that it has changed.
FRESH_SECONDS = 60.0
#: A server's program has some seconds to end by itself; this is longer than the SDK gives it.
_CLOSE_SECONDS = 15.0
_LAST_WORDS_SECONDS = 0.5


class Connection:
    """A connection, from the moment it is being opened. Use it on one loop.

    Raises `ConfigError` if the server's settings refer to what is not set.
    """

    def __init__(self, server: McpServer, environ: Mapping[str, str]) -> None:
        self._server = server
        self._env = resolve(server.env, environ, f"MCP server {server.name}")
        self._headers = resolve(server.headers, environ, f"MCP server {server.name}")
        self._stderr = StderrTail(server.name)
        self._opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._opening = HttpReport()
        self._ending = asyncio.Event()
        self._scope = anyio.CancelScope()
        self._read: MemoryObjectReceiveStream[object] | None = None
        self._listing: tuple[ToolDefinition, ...] = ()
        self._listed_at: float | None = None
        self._list_lock = asyncio.Lock()
        self._calls = 0
        self._retired = False
        self._abandoned: set[asyncio.Task[object]] = set()
        self._owner = asyncio.create_task(self._own(), name=f"afl-mcp-{server.name}")
        # whoever waits for it is told by `_lost`; nobody may be waiting
        self._owner.add_done_callback(lambda owner: owner.cancelled() or owner.exception())

    @property
    def is_usable(self) -> bool:
        """Whether a call may be made on it, as far as is known without asking the server."""
        ended = self._read is not None and self._read.statistics().open_send_streams == 0
        return not (ended or self._retired or self._owner.done())

    @property
    def is_closed(self) -> bool:
        return self._owner.done()

    async def wait_until_open(self) -> None:
        """Raises `McpUnreachable` or `McpProtocolError`. Any number of tasks may wait."""
        either: set[asyncio.Future[Client] | asyncio.Future[None]] = {self._opened, self._owner}
        await asyncio.wait(either, timeout=OPEN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if self._opened.done():
            return
        if self._owner.done():
            cause = None if self._owner.cancelled() else self._owner.exception()
            raise trouble.not_opened(
                self._server, cause, self._opening, await self._last_words()
            ) from cause
        self._scope.cancel()
        raise McpUnreachable(
            f"MCP server {self._server.name} was not ready within {OPEN_SECONDS:g} s. "
            "Look at its own log; a first start that downloads something may need to be done once "
            "by hand."
        )

    async def list_tools(self) -> tuple[ToolDefinition, ...]:
        """All tools of the server, remembered for a while."""
        async with self._list_lock:
            now = time.monotonic()
            if self._listed_at is None or now - self._listed_at > FRESH_SECONDS:
                # before it is asked: a change that comes while it answers makes it old again
                self._listed_at = now
                try:
                    self._listing = await self.call(
                        lambda client: listing.all_tools(client, self._server.name),
                        timedelta(seconds=OPEN_SECONDS),
                    )
                except BaseException:
                    self._listed_at = None
                    raise
            return self._listing

    async def call(self, ask: Callable[[Client], Awaitable[T]], timeout: timedelta) -> T:
        """Asks the server something. Raises what `trouble` makes of it, and `McpTimeout`."""
        if self._owner.done():
            raise McpUnreachable(await self._gone())
        client, report = self._opened.result(), HttpReport()

        async def reported() -> T:
            report_of_call.set(report)
            return await ask(client)

        call = asyncio.create_task(reported())
        self._calls += 1
        try:
            await asyncio.wait(
                {call, self._owner},
                timeout=timeout.total_seconds(),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if self._owner.done():
                await asyncio.wait({call}, timeout=1)
            if call.done():
                return call.result()
            if self._owner.done():
                raise McpServerGone(await self._gone())
            self._listed_at = None  # so that the next call finds out whether it still answers
            raise McpTimeout(
                f"MCP server {self._server.name} did not answer within "
                f"{timeout.total_seconds():g} s. The tool may still do its work; set a longer "
                f"`timeout` in [mcp.{self._server.name}] if it needs one."
            )
        except trouble.OF_CALLS as error:
            raise trouble.of_call(self._server, error, report, await self._gone()) from error
        finally:
            self._calls -= 1
            self._abandon(call)
            self._end_if_idle()

    def retire(self) -> None:
        """Makes it close when the calls under way have ended; it is not to be used any more."""
        self._retired = True
        self._end_if_idle()

    async def close(self) -> None:
        """Closes it now. Calls under way are told that the server is gone."""
        self._ending.set()
        if not self._opened.done():
            # a program that is cancelled while it is being started could be left behind
            either: set[asyncio.Future[None]] = {self._started, self._owner}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            self._scope.cancel()
        _, late = await asyncio.wait({self._owner}, timeout=_CLOSE_SECONDS)
        if late:
            self._scope.cancel()
        await asyncio.wait({self._owner, *self._abandoned})

    async def _own(self) -> None:
        report_of_call.set(self._opening)
        async with AsyncExitStack() as stack:
            # outermost, so that it ends an opening that takes too long in an orderly way
            stack.enter_context(self._scope)
            client = Client(
                await self._transport(stack),
                cache=None,
                client_info=Implementation(name="agentflow", version=""),
                message_handler=self._hear,
            )
            await stack.enter_async_context(client)
            self._opened.set_result(client)
            await self._ending.wait()

    async def _transport(self, stack: AsyncExitStack) -> Transport:
        if self._server.url is not None:
            http = await stack.enter_async_context(ReportingClient(self._headers))
            self._started.set_result(None)
            return streamable_http_client(
                self._server.url, http_client=http, max_sse_event_size=MAX_BODY_BYTES
            )
        assert self._server.command is not None
        return self._program(
            StdioServerParameters(
                command=self._server.command, args=list(self._server.args), env=self._env
            )
        )

    @asynccontextmanager
    async def _program(
        self, program: StdioServerParameters
    ) -> AsyncGenerator[TransportStreams, None]:
        async with stderr_pipe(self._stderr) as errlog, stdio_client(program, errlog) as streams:
            self._started.set_result(None)
            errlog.close()  # the program has it now, and its end is heard
            read = streams[0]
            if isinstance(read, MemoryObjectReceiveStream):
                self._read = read
            yield streams

    async def _hear(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._listed_at = None

    async def _gone(self) -> str:
        return trouble.gone(self._server, await self._last_words())

    async def _last_words(self) -> str:
        if self._server.command is None or (self._read is not None and self.is_usable):
            return ""
        return await self._stderr.last_words(_LAST_WORDS_SECONDS)

    def _abandon(self, call: asyncio.Task[T]) -> None:
        """Lets a call that nobody waits for any more tell the server so, and end."""
        if call.done():
            return
        call.cancel()
        self._abandoned.add(call)
        call.add_done_callback(self._abandoned.discard)

    def _end_if_idle(self) -> None:
        if self._retired and self._calls == 0:
            self._ending.set()
