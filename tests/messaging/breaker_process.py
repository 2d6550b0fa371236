"""Another process that uses a breaker: `python -m tests.messaging.breaker_process PREFIX WHAT`.

fail    fails until the breaker is open, says so, and ends
probe   sends ten probes at once that wait until the key `go` is there, and counts them in `probes`
hold    takes all permits, says so, and never ends
"""

from __future__ import annotations

import asyncio
import sys

from redis.asyncio import Redis

from afl.messaging.errors import CircuitBreakerOpenError
from afl.messaging.redis_breaker import CircuitBreaker
from tests.messaging.breaker_redis import URL

NAME = "service"


async def fail(breaker: CircuitBreaker, _: Redis, __: str) -> None:
    def broken() -> None:
        raise OSError("broken")

    while True:
        try:
            await breaker.call(broken)
        except CircuitBreakerOpenError:
            print("opened", flush=True)
            return
        except OSError:
            pass


async def probe(breaker: CircuitBreaker, client: Redis, prefix: str) -> None:
    async def wait() -> None:
        await client.incr(f"{prefix}:probes")
        while not await client.exists(f"{prefix}:go"):
            await asyncio.sleep(0.01)

    async def one() -> bool:
        try:
            await breaker.call(wait)
        except CircuitBreakerOpenError:
            await client.incr(f"{prefix}:refused")
            return False
        return True

    admitted = await asyncio.gather(*(one() for _ in range(10)))
    print(sum(admitted), flush=True)


async def hold(breaker: CircuitBreaker, _: Redis, __: str) -> None:
    held = 0
    all_held = asyncio.Event()

    async def forever() -> None:
        nonlocal held
        held += 1
        if held == breaker.config.half_open_max_calls:
            all_held.set()
        await asyncio.Event().wait()

    probes = [
        asyncio.create_task(breaker.call(forever))
        for _ in range(breaker.config.half_open_max_calls)
    ]
    await all_held.wait()
    print("held", flush=True)
    await asyncio.gather(*probes)


async def main(prefix: str, what: str, offset: str) -> None:
    work = {"fail": fail, "probe": probe, "hold": hold}[what]
    async with Redis.from_url(URL) as client:
        breaker = CircuitBreaker(client, NAME, None, prefix, _clock_offset=lambda: float(offset))
        await work(breaker, client, prefix)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
