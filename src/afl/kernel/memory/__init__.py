"""The store that keeps everything in memory: for tests, for `afl run`, and as the plain statement
of what the other stores do.

`store.MemoryStore` is the port, method by method, each under one lock. `afl.kernel.machine` says
how rows change, `claims` and `sweeps` which rows are next; `rows` keeps the rows, the indexes that
make every step cheap, and the undo log that makes it atomic. All indexes are derived from rows in
one place (`Rows._move`), so undoing a row undoes its indexes.
"""

from __future__ import annotations

from afl.kernel.memory.store import MemoryStore

__all__ = ["MemoryStore"]
