"""The guard before facets with `Breaker`: an event loop in a thread of its own, so that no worker
ever waits for an answer."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from afl.bridges.breakers import (
    AttemptFailed,
    Breakers,
    NothingToCount,
    kept_name,
    settled,
    wait_of,
)
from afl.messaging.breaker import CircuitBreakerConfig
from afl.messaging.errors import CircuitBreakerOpenError
from afl.runtime.guarding import BreakerWish, GoAhead, NotNow

_log = logging.getLogger("afl.worker")
_CLOSE_SECONDS = 5.0
#: So many probes that succeed close a breaker, if so many may probe.
_SUCCESSES = 2
#: How long a probe may take before its place goes to another: as long as the breaker is open, and
#: no less than this.
_SHORTEST_LEASE_SECONDS, _LEASE_FACTOR = 300.0, 2

Answer = Callable[[GoAhead | NotNow], None]


class FacetGuard:
    """`guarding.Guard` over breakers. Its thread is there from the first question on."""

    def __init__(self, breakers: Breakers) -> None:
        self._breakers = breakers
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="afl-breakers", daemon=True)
        self._thread.start()

    def ask(self, wish: BreakerWish, answer: Answer) -> None:
        self._begin(self._go_through(wish, answer))

    def close(self) -> None:
        """Attempts that are not settled give back what they were let through with."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_SECONDS)

    def _begin(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _go_through(self, wish: BreakerWish, answer: Answer) -> None:
        """Goes through the breaker for as long as the attempt takes."""
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[bool | None] = loop.create_future()
        is_answered = False

        def settle(good: bool | None) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(_set, outcome, good)

        def let_through() -> None:
            nonlocal is_answered
            is_answered = True
            answer(GoAhead(settle))

        async def attempt() -> None:
            let_through()
            await settled(outcome)

        try:
            config = config_of(wish)
            breaker = await self._breakers.get(
                kept_name(wish.name), config, _counts, f"facet {wish.facet}"
            )
            await breaker.call(attempt)
        except CircuitBreakerOpenError as error:
            answer(NotNow(wait_of(error, config)))
        except (AttemptFailed, NothingToCount):
            pass
        except Exception:  # noqa: BLE001 - a breaker that cannot tell keeps nobody from working
            _log.exception("the breaker %s is of no use", wish.name)
            if not is_answered:
                let_through()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        # what gives permits back may still be at it
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=_CLOSE_SECONDS)
        await self._breakers.close()


def config_of(wish: BreakerWish) -> CircuitBreakerConfig:
    """How the breaker of a facet is set up, as its program says."""
    cooldown = wish.cooldown.total_seconds()
    return CircuitBreakerConfig(
        failure_threshold=wish.failures,
        failure_window_seconds=wish.window.total_seconds(),
        timeout_seconds=cooldown,
        recovery_timeout_seconds=max(_SHORTEST_LEASE_SECONDS, cooldown * _LEASE_FACTOR),
        half_open_max_calls=wish.probes,
        success_threshold=min(_SUCCESSES, wish.probes),
        slow_call_seconds=None if wish.slow is None else wish.slow.total_seconds(),
    )


def _counts(error: Exception) -> bool:
    return isinstance(error, AttemptFailed)


def _set(outcome: asyncio.Future[bool | None], good: bool | None) -> None:
    if not outcome.done():
        outcome.set_result(good)
