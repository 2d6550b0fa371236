"""Circuit breakers in the Redis of the settings. Needs the extra `redis`.

Redis that does not answer stops nobody: until it does, this process counts for itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from time import monotonic

from redis.asyncio import Redis, RedisCluster

from afl.app.errors import BadDatabase
from afl.app.mailing import KEY_PREFIX, key_style, redis_client
from afl.base.settings import Settings
from afl.bridges.breakers import Breakers, shown_name
from afl.messaging.breaker import CircuitBreakerConfig
from afl.messaging.breaker_calls import BreakerCalls
from afl.messaging.breaker_list import ListedBreaker, listed_breakers, reset_breaker
from afl.messaging.redis_breaker import CircuitBreaker

_log = logging.getLogger("afl.worker")
#: How long to wait for Redis to be found, and how long to leave it alone if it is not.
_CONNECT_SECONDS, _AWAY_SECONDS = 1.0, 1.0


class RedisBreakers:
    """`bridges.breakers.Breakers` that all processes with this Redis share. Used in one loop."""

    def __init__(self, redis_url: str, own: Breakers) -> None:
        """`own` are those of this process, for as long as Redis was never there."""
        self._settings = Settings(redis_url=redis_url)
        self._own = own
        self._open = AsyncExitStack()
        self._redis: Redis | RedisCluster | None = None
        self._connecting = asyncio.Lock()
        self._ask_again_at = 0.0
        self._breakers: dict[tuple[str, CircuitBreakerConfig], CircuitBreaker] = {}

    async def get(
        self,
        name: str,
        config: CircuitBreakerConfig,
        counts: Callable[[Exception], bool],
        user: str,
    ) -> BreakerCalls:
        redis = self._redis or await self._connect()
        if redis is None:
            return await self._own.get(name, config, counts, user)
        breaker = self._breakers.get((name, config))
        if breaker is None:
            breaker = self._breakers[name, config] = CircuitBreaker(
                redis, name, config, KEY_PREFIX, counts=counts, key_style=key_style(redis)
            )
        breaker.used_by(user)
        return breaker

    async def close(self) -> None:
        await self._open.aclose()

    async def _connect(self) -> Redis | RedisCluster | None:
        async with self._connecting:
            if self._redis is None and monotonic() >= self._ask_again_at:
                try:
                    async with asyncio.timeout(_CONNECT_SECONDS):
                        client = redis_client(self._settings)
                        self._redis = await self._open.enter_async_context(client)
                except (BadDatabase, TimeoutError) as error:
                    self._ask_again_at = monotonic() + _AWAY_SECONDS
                    _log.warning("breakers are this process's own for now: %s", error)
            return self._redis


async def list_all(settings: Settings) -> list[ListedBreaker]:
    """All breakers, under the names that they are kept by.

    Raises:
        BadDatabase: there is no Redis, or it does not answer.
    """
    async with redis_client(settings) as redis:
        return await listed_breakers(redis, KEY_PREFIX, key_style(redis))


async def reset(settings: Settings, name: str) -> str | None:
    """Closes the breaker of this name, for everybody; tells the state that it had, None if there is
    no such breaker.

    Raises:
        BadDatabase: there is no Redis, or it does not answer.
    """
    async with redis_client(settings) as redis:
        for each in await listed_breakers(redis, KEY_PREFIX, key_style(redis)):
            if shown_name(each.name) == name:
                await reset_breaker(redis, each.name, KEY_PREFIX, key_style(redis))
                return each.state.value
    return None
