"""What time makes wrong, as this store finds it, with how each item is put right.

Lanes need no mending here: in this store nothing can come between letting go of a lane and giving
it to the next, so that I7 holds after every transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from afl.kernel.machine import mending
from afl.kernel.memory.rows import Rows
from afl.kernel.model import CallId, TaskId, Worker, WorkerId, WorkerState

#: Greater than every id, so that a time with it is the end of that time.
_LAST = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class Kind:
    """`mend` answers which count of `Swept` goes up, or None if there was nothing to do."""

    find: Callable[[Rows, int], list[Any]]
    mend: Callable[[Rows, Any], str | None]


def _find_lost_workers(rows: Rows, limit: int) -> list[WorkerId]:
    live = (WorkerState.STARTUP, WorkerState.RUNNING)
    return [worker.id for worker in _expired(rows) if worker.state in live][:limit]


def _find_lost_tasks(rows: Rows, limit: int) -> list[TaskId]:
    lost = [task for worker in _expired(rows) for task in sorted(rows.held.get(worker.id, ()))]
    return lost[:limit]


def _find_late_calls(rows: Rows, limit: int) -> list[CallId]:
    return rows.call_deadlines.up_to((rows.now, CallId(_LAST)), limit)


def _find_late_tasks(rows: Rows, limit: int) -> list[TaskId]:
    return rows.deadlines.up_to((rows.now, TaskId(_LAST)), limit)


def _find_orphans(rows: Rows, limit: int) -> list[TaskId]:
    # A task that ended by itself, or whose caller's end was taken back, is no orphan any more.
    rows.orphans = {task for task in rows.orphans if mending.is_orphan(rows, task)}
    return sorted(rows.orphans)[:limit]


KINDS = (
    Kind(_find_lost_workers, mending.give_up_worker),
    Kind(_find_lost_tasks, mending.recover_task),
    Kind(_find_late_calls, mending.time_out_call),
    Kind(_find_late_tasks, mending.time_out_task),
    Kind(_find_orphans, mending.stop_orphan),
)


def _expired(rows: Rows) -> list[Worker]:
    expired = [worker for worker in rows.workers.values() if worker.expires_at <= rows.now]
    return sorted(expired, key=lambda worker: (worker.expires_at, worker.id))
