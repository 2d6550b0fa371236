"""The clock of an engine: moving it lets happen what is due, in order."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Protocol

from afl.base.durations import parse_duration
from afl.kernel.model import CallStatus, State
from afl.kernel.port import Store
from afl.testing.clock import VirtualClock

_PAGE = 1000
_CALLERS = ("flow", "turn")
_OPEN = (State.QUEUED, State.READY, State.RUNNING, State.WAITING)


class Driven(Protocol):
    """What goes on as far as it can at the present time."""

    @property
    def kernel(self) -> Store: ...
    def drive(self) -> None: ...


class EngineClock:
    """The virtual time of an engine."""

    def __init__(self, virtual: VirtualClock, engine: Driven) -> None:
        self._virtual = virtual
        self._engine = engine

    def now(self) -> datetime:
        """The virtual time."""
        return self._virtual.now()

    def advance(self, by: str | timedelta) -> None:
        """Lets time pass, such as `3d`. What is due on the way happens when it is due."""
        span = timedelta(milliseconds=parse_duration(by)) if isinstance(by, str) else by
        end = self.now() + span
        self._engine.drive()
        while (due := next_due(self._engine.kernel, self.now())) is not None and due <= end:
            self.jump(due)
            self._engine.drive()
        self.jump(end)
        self._engine.drive()

    def jump(self, to: datetime) -> None:
        """Sets the time without letting anything happen."""
        self._virtual.advance(max(to - self.now(), timedelta(0)))


def next_due(kernel: Store, now: datetime) -> datetime | None:
    """When something happens next by itself: a delay, a deadline or a timer ends."""
    return min((due for due in _dues(kernel) if due > now), default=None)


def _dues(kernel: Store) -> Iterator[datetime]:
    for state in _OPEN:
        page = kernel.find_tasks(state=state, limit=_PAGE)
        while page:
            for task in page:
                if task.state is State.READY:
                    yield task.run_at
                if task.deadline is not None:
                    yield task.deadline
                for call in kernel.calls_of(task.id) if task.kind in _CALLERS else ():
                    if call.status is CallStatus.OPEN:
                        yield call.deadline
            page = kernel.find_tasks(state=state, after=page[-1].id, limit=_PAGE)
