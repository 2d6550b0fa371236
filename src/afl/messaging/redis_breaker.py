"""`CircuitBreaker`: one breaker for all processes, kept in Redis. Needs the extra `redis`.

Every call asks Redis whether it may go through, and tells it the result: when one process has
opened the breaker, the next call of any other is refused. `breaker` has the rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from redis.asyncio import Redis, RedisCluster

from afl.base.clock import Clock
from afl.base.system import SystemClock
from afl.messaging.breaker import CircuitBreakerConfig
from afl.messaging.breaker_calls import BreakerCalls
from afl.messaging.redis.keys import KeyStyle
from afl.messaging.shared_breaker import SharedBreaker, as_text, registry_key

_NAME = re.compile(r"[^:{}\s]+")


class CircuitBreaker(BreakerCalls):
    """Calls go through it. All processes with the same Redis, prefix and name share it."""

    def __init__(
        self,
        redis: Redis | RedisCluster,
        name: str,
        config: CircuitBreakerConfig | None = None,
        key_prefix: str = "ao",
        *,
        counts: Callable[[Exception], bool] = lambda error: True,
        on_unavailable: Literal["closed", "open"] = "closed",
        key_style: KeyStyle = "plain",
        clock: Clock | None = None,
        _clock_offset: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """The client stays the caller's.

        Args:
            name: what is called; without colons, braces and blanks.
            counts: which exceptions count as failures; others change nothing.
            on_unavailable: what a call does when Redis is down. "closed": it goes through, and this
                process counts for itself. "open": it is refused.
            key_style: "tagged" for a cluster.
            clock: measures slow calls, and times while Redis is down.
        """
        if _NAME.fullmatch(name) is None:
            raise ValueError("the name of a breaker must have no colons, braces and blanks")
        if isinstance(redis, RedisCluster) and key_style != "tagged":
            raise ValueError("a Redis Cluster needs key_style='tagged'")
        config, clock = config or CircuitBreakerConfig(), clock or SystemClock()
        kept = SharedBreaker(redis, name, config, key_prefix, key_style, clock, _clock_offset)
        super().__init__(kept, name, config, clock, counts, on_unavailable)
        #: tells those who look at the breaker that somebody calls through it
        self.used_by = kept.used_by


async def list_breakers(redis: Redis | RedisCluster, key_prefix: str = "ao") -> list[str]:
    """The names of all breakers below the prefix that were ever called."""
    names = await redis.execute_command("SMEMBERS", registry_key(key_prefix))
    return sorted(map(as_text, names))
