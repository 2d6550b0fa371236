"""Wakes who waits for messages.

A ring says only that it is worth a look, so none is missed for good: who hears nothing looks now
and then anyway. A ring wakes one that waits in each process, and whoever found something wakes the
next; so a process never has more than one that looks because of rings, however often it rings.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from redis.asyncio import Redis, RedisCluster
from redis.exceptions import RedisError

from afl.messaging.redis.cancelling import Heeded
from afl.messaging.redis.packing import text_of

#: How often to look for oneself: while rings are heard, and while they are not.
_LOOK_SECONDS = 1.0
_LOOK_DEAF_SECONDS = 0.1
_LISTEN_SECONDS = 1.0
_CANCEL_SECONDS = 0.2


class Waiter:
    """One that waits at a door."""

    def __init__(self, doorbell: Doorbell) -> None:
        self._doorbell = doorbell
        self._rung = asyncio.Event()
        #: not asleep: a ring that comes now makes it look once more
        self.looks = True
        self.found = False

    @property
    def is_rung(self) -> bool:
        return self._rung.is_set()

    def ring(self) -> None:
        self._rung.set()

    async def wait(self, at_most_seconds: float) -> None:
        """Until there is a ring, or it is time to look without one."""
        look = _LOOK_SECONDS if self._doorbell.hears else _LOOK_DEAF_SECONDS
        self.looks = False
        with suppress(TimeoutError):
            async with asyncio.timeout(max(min(at_most_seconds, look), 0)):
                await self._rung.wait()
        self.looks = True
        self._rung.clear()


class Doorbell:
    """All doors at which somebody of this process waits."""

    def __init__(self, redis: Redis | RedisCluster) -> None:
        self._redis = redis
        self._waiters: dict[str, list[Waiter]] = defaultdict(list)
        self._channels: set[str] = set()
        self._subscribing = asyncio.Lock()
        self._pubsub: Any = None
        self._listener: asyncio.Task[None] | None = None
        self.hears = False

    @asynccontextmanager
    async def waiter(self, channel: str) -> AsyncIterator[Waiter]:
        """Somebody who will look, wait, and look again."""
        waiter = Waiter(self)
        self._waiters[channel].append(waiter)
        try:
            await self._listen_to(channel)
            yield waiter
        finally:
            self._waiters[channel].remove(waiter)
            if waiter.is_rung or waiter.found:
                self._ring(channel)

    async def close(self) -> None:
        while self._listener is not None and not self._listener.done():
            # the client may swallow a cancellation
            self._listener.cancel()
            await asyncio.wait([self._listener], timeout=_CANCEL_SECONDS)
        self._listener = None
        if self._pubsub is not None:
            with suppress(RedisError, OSError):
                await self._pubsub.aclose()
            self._pubsub = None
        self._channels.clear()
        self.hears = False

    async def _listen_to(self, channel: str) -> None:
        if channel in self._channels or not hasattr(self._redis, "pubsub"):
            return
        async with self._subscribing:
            if channel in self._channels:
                return
            try:
                if self._pubsub is None:
                    self._pubsub = self._redis.pubsub()
                with Heeded():
                    await self._pubsub.subscribe(channel)
            except (RedisError, OSError):
                return  # polling does; whoever waits next tries again
            self._channels.add(channel)
            if self._listener is None:
                self._listener = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        while True:
            try:
                with Heeded():
                    heard = await self._pubsub.get_message(timeout=_LISTEN_SECONDS)
            except (RedisError, OSError):
                self.hears = False
                await asyncio.sleep(_LISTEN_SECONDS)
                continue
            if heard is None:
                continue
            channel = text_of(heard["channel"])
            if heard["type"] == "subscribe":
                # also after a reconnection, when rings may have been missed
                self.hears = True
                for waiter in self._waiters[channel]:
                    waiter.ring()
            else:
                self._ring(channel)

    def _ring(self, channel: str) -> None:
        waiters = self._waiters[channel]
        looking = (waiter for waiter in waiters if waiter.looks)
        waiter = next(looking, waiters[0] if waiters else None)
        if waiter is not None:
            waiter.ring()
