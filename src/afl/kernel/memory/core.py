"""What every part of the memory store shares: the lock, the rows, and the transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from afl.base.clock import Clock
from afl.base.ids import IdSource
from afl.kernel.errors import NotFound
from afl.kernel.memory.rows import Rows
from afl.kernel.memory.transaction import MemoryTransaction, Tables, TablesView
from afl.kernel.model import Task, TaskId
from afl.kernel.port import Writes

T = TypeVar("T")


class Core:
    """One lock around everything. A transaction that raises leaves no trace."""

    def __init__(self, clock: Clock, ids: IdSource) -> None:
        self._clock = clock
        self._ids = ids
        self._lock = threading.RLock()
        self._rows = Rows()
        self._tables: dict[str, dict[str, Any]] = {}
        self._transaction = _Scope(self._lock, self._rows, clock)

    def _run_writes(self, writes: Writes | None) -> None:
        if writes is not None:
            tables = Tables(self._rows.journal, self._tables)
            writes(MemoryTransaction(tables, self._rows.now))

    def _task(self, task: TaskId) -> Task:
        found = self._rows.tasks.get(task)
        if found is None:
            raise NotFound(f"there is no task {task}")
        return found

    def read_table(self, name: str) -> dict[str, Any]:
        """A copy of a table that `writes` wrote to; empty if nobody did."""
        with self._lock:
            return dict(self._tables.get(name, {}))

    def read_tables(self, read: Callable[[TablesView], T]) -> T:
        """What `read` answers about the tables, with copies; nothing changes meanwhile."""
        with self._lock:
            return read(TablesView(self._tables))


class _Scope:
    """`with` this: the lock is held, the time is fixed, and an exception undoes everything."""

    __slots__ = ("_clock", "_lock", "_rows")

    def __init__(self, lock: threading.RLock, rows: Rows, clock: Clock) -> None:
        self._lock = lock
        self._rows = rows
        self._clock = clock

    def __enter__(self) -> Rows:
        self._lock.acquire()
        try:
            self._rows.journal.begin()
            self._rows.now = self._clock.now()
        except BaseException:
            self._lock.release()
            raise
        return self._rows

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._rows.journal.end(keep=kind is None)
        finally:
            self._lock.release()
