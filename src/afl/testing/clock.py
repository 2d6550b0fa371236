"""Time and ids that a test decides."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

#: Where a virtual clock starts unless it is told otherwise.
START = datetime(2030, 1, 1, tzinfo=UTC)


class VirtualClock:
    """A clock that stands still until it is moved.

    With a `tick`, every look at the time of day moves it on by that much, so that no two looks see
    the same time: what a real clock does, made repeatable. Threads may share one clock.
    """

    def __init__(self, start: datetime = START, tick: timedelta = timedelta(0)) -> None:
        if start.tzinfo is None:
            raise ValueError("a clock starts at an aware time; give the start a time zone")
        self._start = self._now = start.astimezone(UTC)
        self._tick = tick
        self._lock = threading.Lock()

    def now(self) -> datetime:
        """The virtual time, aware, in UTC."""
        with self._lock:
            self._now += self._tick
            return self._now

    def monotonic(self) -> float:
        """Seconds of virtual time since the start."""
        with self._lock:
            return (self._now - self._start).total_seconds()

    def advance(self, by: timedelta) -> None:
        """Lets time pass at once."""
        if by < timedelta(0):
            raise ValueError(f"time does not go back by {-by}")
        with self._lock:
            self._now += by


class SequentialIds:
    """Ids that count up: the same in every run of a test, in the form of version 7 UUIDs."""

    def __init__(self, first: int = 1) -> None:
        self._next = first
        self._lock = threading.Lock()

    def new_id(self) -> str:
        """A fresh id, greater than every id made here before."""
        with self._lock:
            number, self._next = self._next, self._next + 1
        return f"00000000-0000-7000-8000-{number:012x}"
