"""The circuit breaker as values: what it is, and what a call and its result make of it.

    closed      calls go through. So many failures in a row, all within a window, open it.
    open        calls are refused. After a while it is half open.
    half open   so many calls may probe, each with a permit. So many successes close it, one failure
                opens it again. A permit that is not given back in time is free again, so no lost
                process can hold it for ever.

A result counts only in the state in which its call was let through: `epoch` numbers the states.
Times are whole milliseconds of whatever clock the caller has. `redis_breaker` has the same rules as
a script, and a test that plays both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class BreakerState(StrEnum):
    """Whether calls go through."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class CircuitBreakerConfig(BaseModel):
    """When a breaker opens and closes. The first five are those of the specification."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: so many failures in a row open it
    failure_threshold: int = Field(default=5, ge=1, le=100)
    #: how long it stays open
    timeout_seconds: float = Field(default=60.0, ge=1, le=3600)
    #: how long a probe may take before its permit goes to another one
    recovery_timeout_seconds: float = Field(default=300.0, ge=1, le=7200)
    #: how many calls may probe while it is half open
    half_open_max_calls: int = Field(default=3, ge=1, le=20)
    #: so many probes that succeed close it
    success_threshold: int = Field(default=2, ge=1, le=10)
    #: failures that are further apart than this are not counted together
    failure_window_seconds: float = Field(default=300.0, gt=0, le=86_400)
    #: a call that takes longer counts as a failure, although its result is handed on; None: never
    slow_call_seconds: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.success_threshold > self.half_open_max_calls:
            raise ValueError(
                "success_threshold must not be above half_open_max_calls: so many probes could "
                "never succeed"
            )
        if self.recovery_timeout_seconds <= self.timeout_seconds:
            raise ValueError("recovery_timeout_seconds must be longer than timeout_seconds")
        return self


@dataclass(frozen=True, slots=True)
class Breaker:
    """A breaker at one moment."""

    state: BreakerState = BreakerState.CLOSED
    epoch: int = 0
    since: int = 0
    #: when the failures since the last success were
    failures: tuple[int, ...] = ()
    successes: int = 0
    #: who may probe, and until when
    permits: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether a call goes through. If not, after how many milliseconds to ask again."""

    admitted: bool
    state: BreakerState
    epoch: int
    retry_after_ms: int = 0


def ms(seconds: float) -> int:
    """Seconds as whole milliseconds."""
    return round(seconds * 1000)


def seen_at(breaker: Breaker, config: CircuitBreakerConfig, now: int) -> Breaker:
    """What time has made of a breaker."""
    if breaker.state is BreakerState.OPEN and now >= breaker.since + ms(config.timeout_seconds):
        return _turned(breaker, BreakerState.HALF_OPEN, now)
    if any(until <= now for _, until in breaker.permits):
        return replace(breaker, permits=tuple(each for each in breaker.permits if each[1] > now))
    return breaker


def admit(
    breaker: Breaker, config: CircuitBreakerConfig, permit: str, now: int
) -> tuple[Breaker, Admission]:
    """Whether a call goes through. A permit that was given is given again."""
    breaker = seen_at(breaker, config, now)
    state, epoch = breaker.state, breaker.epoch
    if state is BreakerState.OPEN:
        left = breaker.since + ms(config.timeout_seconds) - now
        return breaker, Admission(False, state, epoch, left)
    if state is BreakerState.CLOSED or permit in dict(breaker.permits):
        return breaker, Admission(True, state, epoch)
    # what has succeeded counts, so that no more than this ever probe before it is decided
    if len(breaker.permits) + breaker.successes >= config.half_open_max_calls:
        left = min((until for _, until in breaker.permits), default=now + 1) - now
        return breaker, Admission(False, state, epoch, left)
    until = now + ms(config.recovery_timeout_seconds)
    return (
        replace(breaker, permits=(*breaker.permits, (permit, until))),
        Admission(True, state, epoch),
    )


def settle(
    breaker: Breaker, config: CircuitBreakerConfig, permit: str, epoch: int, good: bool, now: int
) -> Breaker:
    """What the result of a call that was let through makes of it."""
    breaker = seen_at(breaker, config, now)
    if breaker.epoch != epoch:
        return breaker
    if breaker.state is BreakerState.CLOSED:
        return _counted(breaker, config, good, now)
    if breaker.state is BreakerState.OPEN or permit not in dict(breaker.permits):
        return breaker
    if not good:
        return _turned(breaker, BreakerState.OPEN, now)
    breaker = replace(release(breaker, permit), successes=breaker.successes + 1)
    if breaker.successes < config.success_threshold:
        return breaker
    return _turned(breaker, BreakerState.CLOSED, now)


def release(breaker: Breaker, permit: str) -> Breaker:
    """The breaker when a call was given up without a result."""
    return replace(breaker, permits=tuple(each for each in breaker.permits if each[0] != permit))


def reset(breaker: Breaker, now: int) -> Breaker:
    """Closed, whatever it was."""
    return _turned(breaker, BreakerState.CLOSED, now)


def _counted(breaker: Breaker, config: CircuitBreakerConfig, good: bool, now: int) -> Breaker:
    if good:
        return replace(breaker, failures=()) if breaker.failures else breaker
    oldest = now - ms(config.failure_window_seconds)
    failures = (*(at for at in breaker.failures if at > oldest), now)
    if len(failures) < config.failure_threshold:
        return replace(breaker, failures=failures)
    return _turned(breaker, BreakerState.OPEN, now)


def _turned(breaker: Breaker, state: BreakerState, now: int) -> Breaker:
    return Breaker(state, breaker.epoch + 1, now)
