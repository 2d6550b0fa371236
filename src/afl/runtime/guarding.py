"""Circuit breakers before facets, as workers know them: whom to ask, and what to tell.

A worker asks before each attempt at a task whose program has `with Breaker(...)`, and tells what
came of it. Who answers is wired from outside; a worker without a guard lets everything through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from afl.kernel.model import CallSpec, Json, Suspend, Task, TaskSpec
from afl.runtime.calls import BREAKER, TIMERS

#: Tells what came of an attempt: whether it was good; None if that says nothing.
Settle = Callable[[bool | None], None]

_SHORTEST_WAIT = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class BreakerWish:
    """The breaker that a task is to go through, as its program says."""

    name: str
    #: the facet that is to be served
    facet: str
    failures: int
    window: timedelta
    cooldown: timedelta
    probes: int
    #: an attempt that takes longer counts as a failure
    slow: timedelta | None = None


@dataclass(frozen=True, slots=True)
class GoAhead:
    """The attempt may be made. Its result has to be told, once."""

    settle: Settle


@dataclass(frozen=True, slots=True)
class NotNow:
    """The attempt may not be made, and is worth asking about again after this time."""

    wait: timedelta


class Guard(Protocol):
    """Keeps the breakers. Threads share it."""

    def ask(self, wish: BreakerWish, answer: Callable[[GoAhead | NotNow], None]) -> None:
        """Whether an attempt may be made: `answer` is called once, from any thread. Never waits."""
        ...

    def close(self) -> None:
        """Lets go of connections. What is not settled by then is as if nothing came of it."""
        ...


@dataclass(frozen=True, slots=True)
class PutOff(Suspend):
    """The end of a claim that made no attempt: the task waits for its breaker by this call."""

    call: CallSpec


def wish_of(task: Task) -> BreakerWish | None:
    """The breaker before a task, None if there is none."""
    given = task.input if isinstance(task.input, dict) else {}
    wish = given.get("breaker")
    if not isinstance(wish, dict):
        return None
    slow = wish.get("slow_ms")
    return BreakerWish(
        name=str(wish["name"]),
        facet=str(given.get("facet") or task.name),
        failures=_int(wish, "failures"),
        window=timedelta(milliseconds=_int(wish, "window_ms")),
        cooldown=timedelta(milliseconds=_int(wish, "cooldown_ms")),
        probes=_int(wish, "probes"),
        slow=timedelta(milliseconds=slow) if isinstance(slow, int) else None,
    )


def put_off(task: Task, breaker: str, wait: timedelta) -> PutOff:
    """Has a task wait for its breaker. The key is the fence's: one for each time."""
    spec = TaskSpec("timer", BREAKER, tenant=task.tenant, list=TIMERS, input={"breaker": breaker})
    return PutOff(CallSpec(f"breaker:{task.fence}", spec, max(wait, _SHORTEST_WAIT)))


def _int(given: Mapping[str, Json], name: str) -> int:
    value = given[name]
    assert isinstance(value, int)
    return value
