"""Calls that go through a circuit breaker, wherever its state is kept. `breaker` has the rules.

Every call asks whether it may go through, and tells its result. If the place that keeps the state
cannot be reached, the breaker does as it was told: calls go through and this process counts for
itself, or they are refused.
"""

from __future__ import annotations

import asyncio
import inspect
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, overload

from afl.base.clock import Clock
from afl.messaging.breaker import (
    Admission,
    Breaker,
    BreakerState,
    CircuitBreakerConfig,
    admit,
    ms,
    release,
    seen_at,
    settle,
)
from afl.messaging.errors import CircuitBreakerOpenError, CircuitBreakerUnavailable

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BreakerStatus:
    """A breaker as it is now."""

    name: str
    state: BreakerState
    #: failures in a row, successes of probes, and how many probe now
    failures: int
    successes: int
    probing: int
    #: calls since the counting began, by what came of them
    totals: Mapping[str, int] = field(default_factory=dict)


class KeptBreaker(Protocol):
    """The state of one breaker. Everything may raise `CircuitBreakerUnavailable`."""

    async def admit(self, permit: str) -> Admission:
        """Whether a call goes through."""
        ...

    async def settle(self, permit: str, epoch: int, *, good: bool, slow: bool) -> None:
        """What came of a call."""
        ...

    async def release(self, permit: str) -> None:
        """Nothing came of it."""
        ...

    async def reset(self) -> None:
        """Closes it."""
        ...

    async def look(self) -> tuple[Breaker, dict[str, int]]:
        """The breaker, and how many calls came to what."""
        ...


class BreakerCalls:
    """Calls go through it. Used in one event loop."""

    def __init__(
        self,
        kept: KeptBreaker,
        name: str,
        config: CircuitBreakerConfig,
        clock: Clock,
        counts: Callable[[Exception], bool],
        on_unavailable: Literal["closed", "open"],
    ) -> None:
        self.name = name
        self.config = config
        self._kept = kept
        self._counts = counts
        self._on_unavailable = on_unavailable
        self._clock = clock
        #: what this process makes of it while what keeps it is down
        self._local: Breaker | None = None
        self._background: set[asyncio.Task[Any]] = set()

    @overload
    async def call(
        self, func: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    async def call(self, func: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...
    async def call(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The result of the function, which may be async or not; one that is not runs here and now.

        Raises:
            CircuitBreakerOpenError: the function was not called.
        """
        permit = secrets.token_hex(8)
        admission = await self._ask(permit)
        if not admission.admitted:
            seconds = max(admission.retry_after_ms, 0) / 1000
            raise CircuitBreakerOpenError(
                f"{self.name} is {admission.state.value.replace('_', ' ')}: it failed too often; "
                f"try again in {seconds:.1f} s",
                state=admission.state.value,
                retry_after=seconds,
            )
        begun = self._clock.monotonic()
        try:
            result = func(*args, **kwargs)
            if inspect.isawaitable(result):
                result = await result
        except Exception as error:
            if self._counts(error):
                await self._settle(permit, admission, good=False, slow=False)
            else:
                await self._give_back(permit)
            raise
        except BaseException:
            await self._give_back(permit)
            raise
        limit = self.config.slow_call_seconds
        slow = limit is not None and self._clock.monotonic() - begun > limit
        await self._settle(permit, admission, good=not slow, slow=slow)
        return result

    async def state(self) -> BreakerState:
        """Whether calls go through."""
        return (await self.status()).state

    async def status(self) -> BreakerStatus:
        """All that is known of it. While Redis is down, what this process knows."""
        try:
            breaker, totals = await self._kept.look()
        except CircuitBreakerUnavailable:
            breaker, totals = self._here(), {}
        return BreakerStatus(
            self.name,
            breaker.state,
            len(breaker.failures),
            breaker.successes,
            len(breaker.permits),
            totals,
        )

    async def reset(self) -> None:
        """Closes it, for everybody.

        Raises:
            CircuitBreakerUnavailable: Redis cannot be reached.
        """
        await self._kept.reset()
        self._local = None

    async def _ask(self, permit: str) -> Admission:
        # in a task of its own: the client may swallow a cancellation, and then nobody would know
        asking = self._begin(self._admit(permit))

        async def undo() -> None:
            await asyncio.wait([asking])
            await self._give_back(permit)

        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            await asyncio.shield(self._begin(undo()))
            raise

    async def _admit(self, permit: str) -> Admission:
        try:
            admission = await self._kept.admit(permit)
        except CircuitBreakerUnavailable as error:
            if self._on_unavailable == "open":
                raise CircuitBreakerOpenError(
                    f"{self.name} is taken to be open, since Redis cannot be reached; try again "
                    "when it is back, or give the breaker on_unavailable='closed'"
                ) from error
            self._local, admission = admit(self._here(), self.config, permit, self._now())
        else:
            self._local = None
        return admission

    async def _settle(self, permit: str, admission: Admission, *, good: bool, slow: bool) -> None:
        if self._local is not None:
            here = self._here()
            self._local = settle(here, self.config, permit, here.epoch, good, self._now())
        else:
            await self._in_peace(self._kept.settle(permit, admission.epoch, good=good, slow=slow))

    async def _give_back(self, permit: str) -> None:
        if self._local is not None:
            self._local = release(self._local, permit)
        else:
            await self._in_peace(self._kept.release(permit))

    async def _in_peace(self, work: Coroutine[Any, Any, None]) -> None:
        """Does it to the end, although whoever called may be cancelled meanwhile."""

        async def do() -> None:
            # what Redis does not hear of is lost, like the result of a process that died
            with suppress(CircuitBreakerUnavailable):
                await work

        await asyncio.shield(self._begin(do()))

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        # the loop itself does not keep it
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    def _here(self) -> Breaker:
        return seen_at(self._local or Breaker(since=self._now()), self.config, self._now())

    def _now(self) -> int:
        return ms(self._clock.monotonic())
