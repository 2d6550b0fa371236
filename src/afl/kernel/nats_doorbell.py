"""A doorbell through NATS: the quickest between processes. Needs the extra `nats`.

One background thread runs the client. Subjects are `<prefix>.<list>`, with the list in hexadecimal,
since a list may have any characters and a subject may not.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Sequence

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from afl.kernel.doorbell import LocalDoorbell

_CLOSE_SECONDS = 5.0
_CANCEL_SECONDS = 0.2
_PAUSE_SECONDS = 1.0


class NatsDoorbell:
    """Rings in every process that uses the same NATS and prefix."""

    def __init__(self, url: str, prefix: str = "afl.doorbell") -> None:
        self._url = url
        self._prefix = prefix
        self._local = LocalDoorbell()
        self._connected = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._client = Client()
        self._thread = threading.Thread(target=self._run, name="afl-nats-doorbell", daemon=True)
        self._thread.start()

    def ring(self, lists: Iterable[str]) -> None:
        names = list(dict.fromkeys(lists))
        self._loop.call_soon_threadsafe(lambda: self._loop.create_task(self._publish(names)))

    def wait(self, lists: Sequence[str], timeout_seconds: float) -> bool:
        return self._local.wait(lists, timeout_seconds)

    def wait_until_listening(self, timeout_seconds: float) -> bool:
        """Whether rings of others are heard by now."""
        return self._connected.wait(timeout_seconds)

    def close(self) -> None:
        self._local.close()
        asyncio.run_coroutine_threadsafe(self._disconnect(), self._loop).result(_CLOSE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._connecting = self._loop.create_task(self._connect())
        self._loop.run_forever()

    async def _disconnect(self) -> None:
        while not self._connecting.done():
            # the client may swallow a cancellation, and then tries to connect for ever
            self._connecting.cancel()
            await asyncio.wait([self._connecting], timeout=_CANCEL_SECONDS)
        await self._client.close()

    async def _connect(self) -> None:
        while not self._client.is_connected:
            try:
                await self._client.connect(
                    self._url,
                    allow_reconnect=True,
                    max_reconnect_attempts=-1,
                    reconnected_cb=self._look_again,
                    error_cb=self._ignore,
                )
            except (OSError, NatsError):
                await asyncio.sleep(_PAUSE_SECONDS)
        await self._client.subscribe(f"{self._prefix}.*", cb=self._heard)
        await self._client.flush()
        self._connected.set()

    async def _ignore(self, _error: Exception) -> None:
        """A doorbell that does not ring costs a poll interval; that is not worth a message."""

    async def _look_again(self) -> None:
        """Whatever rang while the connection was down is lost; let everybody look once."""
        self._local.ring_all()

    async def _heard(self, message: Msg) -> None:
        name = message.subject.rpartition(".")[2]
        self._local.ring([bytes.fromhex(name).decode()])

    async def _publish(self, lists: Sequence[str]) -> None:
        if self._client.is_connected:
            for name in lists:
                await self._client.publish(f"{self._prefix}.{name.encode().hex()}")
