"""A live feed through NATS. Needs the extra `nats`.

One background thread runs the client. Messages wait in a short queue until it sends them, so that
whoever publishes never waits; while NATS is away, the oldest are dropped.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from contextlib import suppress

from nats.aio.client import Client
from nats.errors import Error as NatsError

from afl.kernel.model import Json

_CLOSE_SECONDS = 5.0
_PAUSE_SECONDS = 1.0
_MOST_WAITING = 10_000


class NatsFeed:
    """Publishes as JSON under `<prefix><subject>`, to whoever listens at that moment."""

    def __init__(self, url: str, prefix: str = "") -> None:
        self._url = url
        self._prefix = prefix
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
        payload = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        with self._lock:
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
        await self._connect()
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

    async def _connect(self) -> None:
        while not self._client.is_connected:
            try:
                await self._client.connect(
                    self._url,
                    allow_reconnect=True,
                    max_reconnect_attempts=-1,
                    error_cb=self._ignore,
                )
            except (OSError, NatsError):
                await asyncio.sleep(_PAUSE_SECONDS)
        self._connected.set()

    async def _ignore(self, _error: Exception) -> None:
        """A feed that is away is not worth a message: nothing depends on it."""

    async def _disconnect(self) -> None:
        self._sending.cancel()
        await asyncio.gather(self._sending, return_exceptions=True)
        if self._client.is_connected:
            await self._send_waiting()
            await self._client.flush()
        await self._client.close()
