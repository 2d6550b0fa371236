"""The clock of an engine: moving it lets happen what is due, in order."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

from afl.base.durations import parse_duration
from afl.kernel.port import Store
from afl.runtime.driver import next_due
from afl.testing.clock import VirtualClock


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
