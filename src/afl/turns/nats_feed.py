"""A live feed through NATS. Needs the extra `nats`.

One background thread runs the client. Messages wait in a short queue until it sends them, so that
whoever publishes never waits; while NATS is away, the oldest are dropped.

Whoever begins to listen late asks all feeds at `cmd.turn.recap` what was said in a turn so far, and
the one whose model speaks in it answers. `nats_ear` is the other end.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from contextlib import suppress

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from afl.kernel.model import Json
from afl.turns.chunks import OpenAnswers, read_chunk

_CLOSE_SECONDS = 5.0
_PAUSE_SECONDS = 1.0
_MOST_WAITING = 10_000
RECAP = "cmd.turn.recap"


class NatsFeed:
    """Publishes as JSON under `<prefix><subject>`, to whoever listens at that moment."""

    def __init__(self, url: str, prefix: str = "") -> None:
        self._url = url
        self._prefix = prefix
        self._open = OpenAnswers()
        self._waiting: deque[tuple[str, bytes]] = deque(maxlen=_MOST_WAITING)
        self._lock = threading.Lock()
        self._is_awake = False
        self._connected = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._client = Client()
        self._thread = threading.Thread(target=self._run, name="afl-nats-feed", daemon=True)
        self._thread.start()

    def publish(self, subject: str, body: dict[str, Json]) -> None:
        """Never fails and never waits."""
        payload = _encoded(body)
        chunk = read_chunk(body)
        with self._lock:
            if chunk is not None:
                self._open.note(chunk)
            self._waiting.append((self._prefix + subject, payload))
            wake, self._is_awake = not self._is_awake, True
        if wake:
            # one call for all that comes until it is run: a token stream is thousands of messages
            with suppress(RuntimeError):  # closed
                self._loop.call_soon_threadsafe(self._wake)

    def wait_until_connected(self, timeout_seconds: float) -> bool:
        """Whether what is published is sent by now."""
        return self._connected.wait(timeout_seconds)

    def close(self) -> None:
        """Sends what waits, if NATS is there."""
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._disconnect(), self._loop).result(_CLOSE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._news = asyncio.Event()
        self._sending = self._loop.create_task(self._send())
        self._loop.run_forever()

    def _wake(self) -> None:
        self._news.set()

    async def _send(self) -> None:
        await connected(self._client, self._url)
        await self._client.subscribe(self._prefix + RECAP, cb=self._recap)
        self._connected.set()
        while True:
            await self._news.wait()
            self._news.clear()
            await self._send_waiting()

    async def _send_waiting(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._is_awake = False
                    return
                subject, payload = self._waiting.popleft()
            with suppress(NatsError):
                await self._client.publish(subject, payload)

    async def _recap(self, message: Msg) -> None:
        with self._lock:
            said = self._open.so_far(message.data.decode(errors="replace"))
        for chunk in said:
            with suppress(NatsError):
                await self._client.publish(message.reply, _encoded(chunk.body()))

    async def _disconnect(self) -> None:
        self._sending.cancel()
        await asyncio.gather(self._sending, return_exceptions=True)
        if self._client.is_connected:
            await self._send_waiting()
            await self._client.flush()
        await self._client.close()


async def connected(client: Client, url: str) -> None:
    """Connects, and tries again until it can."""
    while not client.is_connected:
        try:
            await client.connect(
                url, allow_reconnect=True, max_reconnect_attempts=-1, error_cb=_ignore
            )
        except (OSError, NatsError):
            await asyncio.sleep(_PAUSE_SECONDS)


async def _ignore(_error: Exception) -> None:
    """A feed that is away is not worth a message: nothing depends on it."""


def _encoded(body: dict[str, Json]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
