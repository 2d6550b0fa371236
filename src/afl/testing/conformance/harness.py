"""What the conformance suite must be given to judge a store."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from afl.kernel.memory import MemoryStore
from afl.kernel.memory.transaction import MemoryTransaction
from afl.kernel.port import Store, Transaction, Writes
from afl.testing.clock import SequentialIds, VirtualClock

_MARKS = "marks"


class Harness(Protocol):
    """A fresh store, and what only its own kind can do."""

    @property
    def store(self) -> Store: ...

    def advance(self, by: timedelta) -> None:
        """Lets time pass for the store, at once."""
        ...

    def mark(self, name: str) -> Writes:
        """Writes for a transaction of this store, which leave a mark of that name."""
        ...

    def marks(self) -> list[str]:
        """The marks of committed transactions, one for each time they were made, sorted."""
        ...


class MemoryHarness:
    """A memory store on a virtual clock. No two transactions share a time, as on a real machine."""

    def __init__(self) -> None:
        self.clock = VirtualClock(tick=timedelta(microseconds=1))
        self._store = MemoryStore(self.clock, SequentialIds())

    @property
    def store(self) -> MemoryStore:
        return self._store

    def advance(self, by: timedelta) -> None:
        self.clock.advance(by)

    def mark(self, name: str) -> Writes:
        def write(transaction: Transaction) -> None:
            assert isinstance(transaction, MemoryTransaction)
            marks = transaction.tables[_MARKS]
            marks[str(len(marks))] = name

        return write

    def marks(self) -> list[str]:
        return sorted(str(mark) for mark in self._store.read_table(_MARKS).values())
