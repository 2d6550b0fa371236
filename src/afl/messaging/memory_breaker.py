"""Circuit breakers in the memory of one process: the rules of `breaker`, and no server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from threading import Lock

from afl.base.clock import Clock
from afl.base.system import SystemClock
from afl.messaging.breaker import (
    Admission,
    Breaker,
    CircuitBreakerConfig,
    admit,
    ms,
    release,
    reset,
    seen_at,
    settle,
)
from afl.messaging.breaker_calls import BreakerCalls


class MemoryBreakers:
    """The state of all breakers of a process, by name. Threads share it."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self._lock = Lock()
        self._breakers: dict[str, Breaker] = {}
        self._totals: dict[str, Counter[str]] = {}

    def change(
        self, name: str, rule: Callable[[Breaker, int], Breaker], count: str = ""
    ) -> Breaker:
        """Has a rule make the next breaker of the present one."""
        with self._lock:
            now = ms(self.clock.monotonic())
            before = self._breakers.get(name) or Breaker(since=now)
            after = self._breakers[name] = rule(before, now)
            if count:
                self._totals.setdefault(name, Counter())[count] += 1
            return after

    def totals(self, name: str) -> dict[str, int]:
        """How many calls came to what."""
        with self._lock:
            return dict(self._totals.get(name, ()))


class MemoryCircuitBreaker(BreakerCalls):
    """Calls go through it. All with the same `MemoryBreakers` and name share it."""

    def __init__(
        self,
        breakers: MemoryBreakers,
        name: str,
        config: CircuitBreakerConfig | None = None,
        *,
        counts: Callable[[Exception], bool] = lambda error: True,
    ) -> None:
        """`counts` says which exceptions count as failures; others change nothing."""
        config = config or CircuitBreakerConfig()
        kept = _InMemory(breakers, name, config)
        super().__init__(kept, name, config, breakers.clock, counts, "closed")


class _InMemory:
    """`KeptBreaker` of this process."""

    def __init__(self, breakers: MemoryBreakers, name: str, config: CircuitBreakerConfig) -> None:
        self._breakers = breakers
        self._name = name
        self._config = config

    async def admit(self, permit: str) -> Admission:
        found: list[Admission] = []

        def rule(breaker: Breaker, now: int) -> Breaker:
            after, admission = admit(breaker, self._config, permit, now)
            found.append(admission)
            return after

        self._breakers.change(self._name, rule)
        return found[0]

    async def settle(self, permit: str, epoch: int, *, good: bool, slow: bool) -> None:
        def rule(breaker: Breaker, now: int) -> Breaker:
            return settle(breaker, self._config, permit, epoch, good, now)

        self._breakers.change(self._name, rule, "good" if good else "slow" if slow else "bad")

    async def release(self, permit: str) -> None:
        self._breakers.change(self._name, lambda breaker, _: release(breaker, permit), "given_up")

    async def reset(self) -> None:
        self._breakers.change(self._name, reset)

    async def look(self) -> tuple[Breaker, dict[str, int]]:
        def rule(breaker: Breaker, now: int) -> Breaker:
            return seen_at(breaker, self._config, now)

        return self._breakers.change(self._name, rule), self._breakers.totals(self._name)
