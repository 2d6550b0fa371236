"""The road through NATS: slices as messages of a stream that keeps them until they are stored.

Needs the extra `nats`. A message has an id, so that one whose acknowledgement was lost is not kept
twice. When the stream is full, messages are refused, and the lines stay in the spool.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from zlib import crc32

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
from nats.js.errors import NotFoundError

from afl.kernel.errors import StoreUnavailable
from afl.logs.codec import pack_slice
from afl.logs.model import Slice

T = TypeVar("T")
_CONNECT_SECONDS = 2
_PUBLISH_SECONDS = 5.0
_CLOSE_SECONDS = 5.0
#: Longer than a send can take with all its waits.
_PATIENCE_SECONDS = 60.0
#: A server sets so much aside. It need not be much: what does not fit waits in the spools.
_MOST_BYTES = 256 * 1024 * 1024
_SUBJECTS = 16


class Names:
    """What the parts of a road are called. A NATS server may serve several databases."""

    def __init__(self, home: str) -> None:
        """
        Args:
            home: the id of the store at the end.
        """
        token = home.replace("-", "")
        self.stream = f"AFL_LOGS_{token}"
        self.subjects = f"afl.logs.{token}.*"
        self.consumer = "sink"
        self._prefix = f"afl.logs.{token}"

    def subject(self, spool: str) -> str:
        return f"{self._prefix}.{crc32(spool.encode()) % _SUBJECTS}"


async def connected(url: str) -> Client:
    """A client that does not connect again by itself: whoever uses it has to look again too."""
    client = Client()
    await client.connect(
        url,
        allow_reconnect=False,
        connect_timeout=_CONNECT_SECONDS,
        # or the first try would be many
        max_reconnect_attempts=1,
        reconnect_time_wait=0,
        error_cb=_ignore,
    )
    return client


async def _ignore(_error: Exception) -> None:
    """Whoever uses the connection meets the error."""


async def with_stream(client: Client, names: Names) -> tuple[JetStreamContext, bool]:
    """The streams of a server, the one of this road among them, and whether that was there."""
    js = client.jetstream(timeout=_PUBLISH_SECONDS)
    try:
        await js.stream_info(names.stream)
        return js, True
    except NotFoundError:
        await js.add_stream(
            StreamConfig(
                name=names.stream,
                subjects=[names.subjects],
                # what is stored goes, and what is not stored is never pushed out
                retention=RetentionPolicy.WORK_QUEUE,
                discard=DiscardPolicy.NEW,
                storage=StorageType.FILE,
                max_bytes=_MOST_BYTES,
            )
        )
        return js, False


class JetStreamRoad:
    """Publishes slices. One background thread runs the client."""

    def __init__(self, url: str, home: Callable[[], str]) -> None:
        """
        Args:
            home: tells the id of the store at the end; asked when there is something to send.
        """
        self._url = url
        self._home = home
        self._names: Names | None = None
        self._has_sent = False
        self._client: Client | None = None
        self._js: JetStreamContext | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="afl-log-road", daemon=True)
        self._thread.start()

    def send(self, slices: Sequence[Slice], again: int) -> None:
        if self._names is None:
            self._names = Names(self._home())
        try:
            self._do(self._publish(self._names, slices, again), _PATIENCE_SECONDS)
        except (OSError, NatsError, TimeoutError) as error:
            raise StoreUnavailable(f"NATS does not take log lines: {error!r}") from error

    def close(self) -> None:
        with suppress(OSError, NatsError, TimeoutError):
            self._do(self._disconnect(), _CLOSE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _do(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    async def _publish(self, names: Names, slices: Sequence[Slice], again: int) -> None:
        try:
            js = await self._streams(names)
            # they are written in this order, and the server reads one connection in order
            waiting = [asyncio.ensure_future(_send(js, names, part, again)) for part in slices]
            answers = await asyncio.gather(*waiting, return_exceptions=True)
            for answer in answers:
                if isinstance(answer, BaseException):
                    raise answer
            self._has_sent = True
        except (OSError, NatsError, TimeoutError):
            # the next try begins afresh, with a stream if this one is gone
            await self._disconnect()
            raise

    async def _streams(self, names: Names) -> JetStreamContext:
        if self._js is None or self._client is None or not self._client.is_connected:
            await self._disconnect()
            self._client = await connected(self._url)
            self._js, was_there = await with_stream(self._client, names)
            if self._has_sent and not was_there:
                self._has_sent = False
                raise StoreUnavailable("NATS has lost its disk; log lines are sent again.")
        return self._js

    async def _disconnect(self) -> None:
        client, self._client, self._js = self._client, None, None
        if client is not None:
            await client.close()


async def _send(js: JetStreamContext, names: Names, part: Slice, again: int) -> None:
    await js.publish(
        names.subject(part.spool),
        pack_slice(part),
        timeout=_PUBLISH_SECONDS,
        stream=names.stream,
        headers={"Nats-Msg-Id": f"{part.spool}:{part.start}-{part.end}:{again}"},
    )
