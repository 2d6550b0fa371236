"""The store that is tested, and the time it lives in."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from afl.kernel.memory import MemoryStore
from afl.testing.clock import SequentialIds, VirtualClock
from afl.testing.conformance.harness import Harness, MemoryHarness


class World(Harness, Protocol):
    """A fresh store, in a time that the simulation moves and can read."""

    def now(self) -> datetime: ...


class MemoryWorld(MemoryHarness):
    """A memory store on a clock that only the simulation moves."""

    def __init__(self, store_type: type[MemoryStore] = MemoryStore) -> None:
        self.clock = VirtualClock()
        self._store = store_type(self.clock, SequentialIds())

    def now(self) -> datetime:
        return self.clock.now()
