"""A breaker in memory, and what can be seen of one in Redis without going through it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from afl.messaging.breaker import BreakerState, CircuitBreakerConfig
from afl.messaging.breaker_list import listed_breakers, reset_breaker
from afl.messaging.errors import CircuitBreakerOpenError
from afl.messaging.memory_breaker import MemoryBreakers, MemoryCircuitBreaker
from afl.messaging.redis_breaker import CircuitBreaker
from afl.testing.clock import VirtualClock
from tests.messaging.breaker_redis import URL, prefix, redis_is_there

CONFIG = CircuitBreakerConfig(
    failure_threshold=2, timeout_seconds=600, recovery_timeout_seconds=900, success_threshold=1
)


def fail() -> None:
    raise OSError("broken")


def test_all_of_one_memory_and_name_share_a_breaker() -> None:
    clock = VirtualClock()
    memory = MemoryBreakers(clock)
    one, two = (MemoryCircuitBreaker(memory, "x", CONFIG) for _ in range(2))
    other = MemoryCircuitBreaker(memory, "y", CONFIG)

    async def play() -> None:
        for breaker in (one, two):
            with pytest.raises(OSError, match="broken"):
                await breaker.call(fail)
        with pytest.raises(CircuitBreakerOpenError) as caught:
            await one.call(fail)
        assert (caught.value.state, caught.value.retry_after) == ("open", 600)
        assert await other.call(lambda: 1) == 1
        clock.advance(timedelta(seconds=600))
        assert await two.state() is BreakerState.HALF_OPEN
        assert await two.call(lambda: 2) == 2
        assert await one.state() is BreakerState.CLOSED
        assert (await one.status()).totals == {"good": 1, "bad": 2}

    asyncio.run(play())


def test_a_breaker_in_memory_can_be_closed_by_hand() -> None:
    breaker = MemoryCircuitBreaker(MemoryBreakers(), "x", CONFIG)

    async def play() -> None:
        for _ in range(2):
            with pytest.raises(OSError, match="broken"):
                await breaker.call(fail)
        await breaker.reset()
        assert await breaker.call(lambda: 1) == 1

    asyncio.run(play())


@pytest.mark.skipif(not redis_is_there(), reason="there is no Redis to test with")
def test_looking_at_a_breaker_shows_how_it_is_set_up_and_changes_nothing() -> None:
    async def play(name: str) -> None:
        async with Redis.from_url(URL) as client:
            breaker = CircuitBreaker(client, "a/b", CONFIG, name)
            breaker.used_by("somebody")
            for _ in range(2):
                with pytest.raises(OSError, match="broken"):
                    await breaker.call(fail)
            for _ in range(2):
                (found,) = await listed_breakers(client, name)
                assert (found.name, found.state, found.config) == (
                    "a/b",
                    BreakerState.OPEN,
                    CONFIG,
                )
                assert found.until is not None
                assert found.until - found.since == timedelta(seconds=600)
                assert list(found.users) == ["somebody"]
                assert found.totals["opened"] == 1
            await reset_breaker(client, "a/b", name)
            assert await breaker.call(lambda: 1) == 1

    with prefix() as name:
        asyncio.run(play(name))
