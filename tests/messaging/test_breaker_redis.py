"""A breaker that processes share through Redis."""

from __future__ import annotations

import asyncio
import functools
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.asyncio import Redis

from afl.messaging.breaker import BreakerState, CircuitBreakerConfig
from afl.messaging.errors import CircuitBreakerOpenError, CircuitBreakerUnavailable
from afl.messaging.redis_breaker import CircuitBreaker, list_breakers
from afl.testing.clock import VirtualClock
from tests.messaging.breaker_process import NAME
from tests.messaging.breaker_redis import URL, prefix, redis_is_there
from tests.messaging.redis_servers import needs_redis_server, server

CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN


class Shared:
    """A Redis and a prefix, whose time is moved by hand."""

    def __init__(self, client: Redis, name: str) -> None:
        self.client = client
        self.prefix = name
        self.offset = 0.0

    def breaker(self, config: CircuitBreakerConfig | None = None, **more: Any) -> CircuitBreaker:  # noqa: ANN401 - of CircuitBreaker
        return CircuitBreaker(
            self.client, NAME, config, self.prefix, _clock_offset=lambda: self.offset, **more
        )

    def process(self, what: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "tests.messaging.breaker_process", self.prefix, what]
        return subprocess.Popen([*words, str(self.offset)], stdout=subprocess.PIPE, text=True)


@asynccontextmanager
async def _shared() -> AsyncIterator[Shared]:
    with prefix() as name:
        async with Redis.from_url(URL) as client:
            yield Shared(client, name)


def in_redis(test: Callable[[Shared], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Runs an async test on a prefix of its own."""

    @functools.wraps(test)
    def run() -> None:
        if not redis_is_there():
            pytest.skip("there is no Redis to test with")

        async def main() -> None:
            async with _shared() as shared:
                await test(shared)

        asyncio.run(main())

    # or pytest would look for a fixture `shared`
    del run.__dict__["__wrapped__"]
    return run


def broken(error: Exception | None = None) -> None:
    raise error or OSError("broken")


async def fail(breaker: CircuitBreaker, times: int) -> None:
    for _ in range(times):
        with pytest.raises(OSError, match="broken"):
            await breaker.call(broken)


async def half_open(shared: Shared, **more: Any) -> CircuitBreaker:  # noqa: ANN401 - of CircuitBreaker
    breaker = shared.breaker(**more)
    await fail(breaker, 5)
    shared.offset += 60
    return breaker


async def answer(value: int, *, more: int = 0) -> int:
    await asyncio.sleep(0)
    return value + more


@in_redis
async def test_functions_of_both_kinds_are_called_with_their_arguments(shared: Shared) -> None:
    breaker = shared.breaker()
    assert await breaker.call(answer, 1, more=2) == 3
    assert await breaker.call(max, 1, 2) == 2
    assert await breaker.call(lambda: answer(7)) == 7
    status = await breaker.status()
    assert (status.name, status.state, status.totals) == (NAME, CLOSED, {"admitted": 3, "good": 3})


@in_redis
async def test_failures_in_a_row_open_it_for_everybody(shared: Shared) -> None:
    breaker, other = shared.breaker(), shared.breaker()
    await fail(breaker, 3)
    await other.call(answer, 1)
    await fail(breaker, 4)
    assert await other.state() is CLOSED, "a success was in between"
    await fail(other, 1)
    with pytest.raises(CircuitBreakerOpenError, match=r"service is open.*try again in \d"):
        await breaker.call(pytest.fail, "it must not be called")
    assert (await breaker.status()).totals["refused"] == 1


@in_redis
async def test_after_the_timeout_successes_close_it(shared: Shared) -> None:
    breaker = shared.breaker()
    await fail(breaker, 5)
    shared.offset += 59
    with pytest.raises(CircuitBreakerOpenError):
        await breaker.call(answer, 1)
    shared.offset += 1
    assert await breaker.state() is HALF_OPEN
    await breaker.call(answer, 1)
    assert await breaker.state() is HALF_OPEN
    await breaker.call(answer, 1)
    assert await breaker.state() is CLOSED


@in_redis
async def test_a_probe_that_fails_opens_it_again(shared: Shared) -> None:
    breaker = await half_open(shared)
    await breaker.call(answer, 1)
    await fail(breaker, 1)
    assert await breaker.state() is OPEN
    assert (await breaker.status()).totals["opened"] == 2


@in_redis
async def test_cancelled_probes_do_not_wedge_it(shared: Shared) -> None:
    breaker = await half_open(shared)
    for _ in range(100):
        begun = asyncio.Event()

        async def wait(begun: asyncio.Event = begun) -> None:
            begun.set()
            await asyncio.Event().wait()

        probe = asyncio.create_task(breaker.call(wait))
        await begun.wait()
        probe.cancel()
        with pytest.raises(asyncio.CancelledError):
            await probe
    status = await breaker.status()
    assert (status.state, status.probing) == (HALF_OPEN, 0)
    for _ in range(2):
        await breaker.call(answer, 1)
    assert await breaker.state() is CLOSED


@in_redis
async def test_a_call_cancelled_while_it_asks_gives_its_permit_back(shared: Shared) -> None:
    breaker = await half_open(shared)
    for pause in (0, 0.0001, 0.0003, 0.001) * 5:
        probe = asyncio.create_task(breaker.call(asyncio.Event().wait))
        await asyncio.sleep(pause)
        probe.cancel()
        with pytest.raises(asyncio.CancelledError):
            await probe
    assert (await breaker.status()).probing == 0


@in_redis
async def test_the_permit_of_a_lost_process_is_free_after_a_while(shared: Shared) -> None:
    breaker = await half_open(shared)
    process = shared.process("hold")
    assert process.stdout is not None
    assert await asyncio.to_thread(process.stdout.readline) == "held\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with pytest.raises(CircuitBreakerOpenError, match="half open"):
        await breaker.call(answer, 1)
    shared.offset += 301
    for _ in range(2):
        await breaker.call(answer, 1)
    assert await breaker.state() is CLOSED


@in_redis
async def test_all_processes_together_probe_no_more_than_allowed(shared: Shared) -> None:
    await half_open(shared)
    processes = [shared.process("probe") for _ in range(4)]
    # whoever is not admitted is refused at once; then those that are may end
    while int(await shared.client.get(f"{shared.prefix}:refused") or 0) < 37:
        await asyncio.sleep(0.01)
    assert await shared.client.get(f"{shared.prefix}:probes") == b"3"
    await shared.client.set(f"{shared.prefix}:go", 1)
    admitted = [await asyncio.to_thread(each.communicate) for each in processes]
    assert sum(int(out) for out, _ in admitted) == 3


@in_redis
async def test_what_one_process_opens_the_others_refuse_at_once(shared: Shared) -> None:
    breaker = shared.breaker()
    await breaker.call(answer, 1)
    process = shared.process("fail")
    assert process.stdout is not None
    assert await asyncio.to_thread(process.stdout.readline) == "opened\n"
    took = []
    for _ in range(5):
        begun = time.monotonic()
        with pytest.raises(CircuitBreakerOpenError):
            await breaker.call(pytest.fail, "it must not be called")
        took.append(time.monotonic() - begun)
    process.communicate()
    assert min(took) < 0.1


@in_redis
async def test_exceptions_that_do_not_count_change_nothing(shared: Shared) -> None:
    breaker = await half_open(shared, counts=lambda error: isinstance(error, OSError))
    for _ in range(10):
        with pytest.raises(ValueError, match="mine"):
            await breaker.call(broken, ValueError("mine"))
    status = await breaker.status()
    assert (status.state, status.successes, status.probing) == (HALF_OPEN, 0, 0)


@in_redis
async def test_slow_calls_count_as_failures_but_have_their_results(shared: Shared) -> None:
    clock = VirtualClock()
    breaker = shared.breaker(CircuitBreakerConfig(slow_call_seconds=2), clock=clock)

    def slow(seconds: float) -> str:
        clock.advance(timedelta(seconds=seconds))
        return "done"

    for _ in range(4):
        assert await breaker.call(slow, 2.5) == "done"
    assert await breaker.call(slow, 1.5) == "done"
    assert (await breaker.status()).failures == 0
    for _ in range(5):
        assert await breaker.call(slow, 2.5) == "done"
    assert await breaker.state() is OPEN
    assert (await breaker.status()).totals["slow"] == 9


@in_redis
async def test_a_reset_closes_it_for_everybody(shared: Shared) -> None:
    breaker = shared.breaker()
    await fail(breaker, 5)
    await shared.breaker().reset()
    assert await breaker.call(answer, 1) == 1


@in_redis
async def test_breakers_are_listed_by_name(shared: Shared) -> None:
    for name in ("two", "one"):
        await CircuitBreaker(shared.client, name, key_prefix=shared.prefix).call(answer, 1)
    assert await list_breakers(shared.client, shared.prefix) == ["one", "two"]
    tagged = CircuitBreaker(shared.client, "t", key_prefix=shared.prefix, key_style="tagged")
    await fail(tagged, 1)
    assert await shared.client.exists(f"{shared.prefix}:cb:state:{{t}}")
    assert await shared.client.ttl(f"{shared.prefix}:cb:metrics:one") > 86_400


@needs_redis_server
def test_it_works_after_redis_has_forgotten_its_scripts(tmp_path: Path) -> None:
    """On a server of its own: the scripts of a server are everybody's."""

    async def play(port: int) -> None:
        async with Redis(host="127.0.0.1", port=port) as client:
            breaker = Shared(client, "forgetful").breaker()
            await breaker.call(answer, 1)
            await client.script_flush()
            assert await breaker.call(answer, 1) == 1

    with server(tmp_path) as own:
        asyncio.run(play(own.port))


def away(**more: Any) -> CircuitBreaker:  # noqa: ANN401 - of CircuitBreaker
    """A breaker whose Redis is down."""
    return CircuitBreaker(Redis(host="127.0.0.1", port=1), NAME, **more)


def test_without_redis_each_process_counts_for_itself() -> None:
    async def main() -> None:
        clock = VirtualClock()
        breaker = away(clock=clock)
        assert await breaker.call(answer, 1) == 1
        await fail(breaker, 5)
        with pytest.raises(CircuitBreakerOpenError):
            await breaker.call(answer, 1)
        clock.advance(timedelta(seconds=60))
        for _ in range(2):
            assert await breaker.call(answer, 1) == 1
        assert await breaker.state() is CLOSED

    asyncio.run(main())


def test_without_redis_it_may_be_taken_to_be_open() -> None:
    breaker = away(on_unavailable="open")
    with pytest.raises(CircuitBreakerOpenError, match="Redis cannot be reached"):
        asyncio.run(breaker.call(pytest.fail, "it must not be called"))


def test_without_redis_nobody_can_close_it() -> None:
    with pytest.raises(CircuitBreakerUnavailable, match="try again"):
        asyncio.run(away().reset())


@in_redis
async def test_when_redis_is_back_all_share_it_again(shared: Shared) -> None:
    clock = VirtualClock()
    breaker = shared.breaker(clock=clock)
    await fail(shared.breaker(), 5)
    real = shared.client.execute_command

    async def down(*words: object, **options: object) -> None:
        raise redis.ConnectionError("down")

    shared.client.execute_command = down  # type: ignore[method-assign]
    assert await breaker.call(answer, 1) == 1
    shared.client.execute_command = real  # type: ignore[method-assign]
    assert await breaker.call(answer, 1) == 1, "it is not asked again at once"
    clock.advance(timedelta(seconds=2))
    with pytest.raises(CircuitBreakerOpenError):
        await breaker.call(answer, 1)


@pytest.mark.parametrize("name", ["", "a:b", "{a}", "a b"])
def test_names_that_do_not_fit_a_key_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="name of a breaker"):
        CircuitBreaker(Redis(), name)
