"""What time makes wrong, and how each item is put right.

For each kind there is one function that finds the items and one that mends a single one. Mending
looks again first: something may have happened to the item since it was found.

Lanes need no mending here: in this store nothing can come between letting go of a lane and giving
it to the next, so that I7 holds after every transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from afl.kernel import rules
from afl.kernel.memory.rows import Rows
from afl.kernel.memory.transitions import answer, close, recover, stop
from afl.kernel.model import (
    CallId,
    CallStatus,
    Outcome,
    State,
    TaskId,
    Worker,
    WorkerId,
    WorkerState,
)

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


def _give_up_worker(rows: Rows, worker_id: WorkerId) -> str | None:
    worker = rows.workers[worker_id]
    if worker.expires_at > rows.now:
        return None
    rows.put_worker(replace(worker, state=WorkerState.ERROR))
    return "workers_expired"


def _find_lost_tasks(rows: Rows, limit: int) -> list[TaskId]:
    lost = [task for worker in _expired(rows) for task in sorted(rows.held.get(worker.id, ()))]
    return lost[:limit]


def _recover(rows: Rows, task_id: TaskId) -> str | None:
    task = rows.tasks[task_id]
    if task.worker is None or rows.workers[task.worker].expires_at > rows.now:
        return None
    recover(rows, task)
    return "tasks_given_up" if rows.tasks[task_id].dead else "tasks_recovered"


def _find_late_calls(rows: Rows, limit: int) -> list[CallId]:
    return rows.call_deadlines.up_to((rows.now, CallId(_LAST)), limit)


def _time_out_call(rows: Rows, call_id: CallId) -> str | None:
    call = rows.calls[call_id]
    if call.status is not CallStatus.OPEN:
        return None
    error = rules.call_timeout_error(call)
    answer(rows, call, CallStatus.TIMEOUT, error)
    if call.callee is not None:
        stop(rows, rows.tasks[call.callee], error)
    return "calls_timed_out"


def _find_late_tasks(rows: Rows, limit: int) -> list[TaskId]:
    return rows.deadlines.up_to((rows.now, TaskId(_LAST)), limit)


def _time_out_task(rows: Rows, task_id: TaskId) -> str | None:
    task = rows.tasks[task_id]
    if task.state is State.CLOSED:
        return None
    close(rows, task, Outcome.TIMEOUT, error=rules.task_timeout_error(task))
    return "tasks_timed_out"


def _find_orphans(rows: Rows, limit: int) -> list[TaskId]:
    # A task that ended by itself, or whose caller's end was taken back, is no orphan any more.
    rows.orphans = {task for task in rows.orphans if _is_orphan(rows, task)}
    return sorted(rows.orphans)[:limit]


def _stop_orphan(rows: Rows, task_id: TaskId) -> str | None:
    if not _is_orphan(rows, task_id):
        return None
    task = rows.tasks[task_id]
    caller = rows.caller_of(task)
    assert caller is not None
    stop(rows, task, rules.orphan_error(caller.id))
    return "orphans_stopped"


KINDS = (
    Kind(_find_lost_workers, _give_up_worker),
    Kind(_find_lost_tasks, _recover),
    Kind(_find_late_calls, _time_out_call),
    Kind(_find_late_tasks, _time_out_task),
    Kind(_find_orphans, _stop_orphan),
)


def _expired(rows: Rows) -> list[Worker]:
    expired = [worker for worker in rows.workers.values() if worker.expires_at <= rows.now]
    return sorted(expired, key=lambda worker: (worker.expires_at, worker.id))


def _is_orphan(rows: Rows, task_id: TaskId) -> bool:
    """Whether a task's caller is closed and it has not been stopped for that."""
    task = rows.tasks.get(task_id)
    if task is None or task.state is State.CLOSED or task.stop_requested:
        return False
    caller = rows.caller_of(task)
    return caller is not None and caller.state is State.CLOSED
