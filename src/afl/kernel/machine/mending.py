"""How each thing that time makes wrong is put right.

Each function looks again first: something may have happened to the item since it was found. It
answers which count of `Swept` goes up, or None if there was nothing to do.
"""

from __future__ import annotations

from dataclasses import replace

from afl.kernel import rules
from afl.kernel.machine.rows import Rows
from afl.kernel.machine.states import CLOSED, OPEN
from afl.kernel.machine.transitions import answer, close, recover, stop
from afl.kernel.model import CallId, CallStatus, Outcome, TaskId, WorkerId, WorkerState


def give_up_worker(rows: Rows, worker_id: WorkerId) -> str | None:
    worker = rows.find_worker(worker_id)
    if worker is None or worker.expires_at > rows.now:
        return None
    rows.put_worker(replace(worker, state=WorkerState.ERROR))
    return "workers_expired"


def recover_task(rows: Rows, task_id: TaskId) -> str | None:
    task = rows.task(task_id)
    if task.worker is None:
        return None
    worker = rows.find_worker(task.worker)
    assert worker is not None
    if worker.expires_at > rows.now:
        return None
    recover(rows, task)
    return "tasks_given_up" if rows.task(task_id).dead else "tasks_recovered"


def time_out_call(rows: Rows, call_id: CallId) -> str | None:
    call = rows.call(call_id)
    if call.status is not OPEN:
        return None
    error = rules.call_timeout_error(call)
    answer(rows, call, CallStatus.TIMEOUT, error)
    if call.callee is not None:
        stop(rows, rows.task(call.callee), error)
    return "calls_timed_out"


def time_out_task(rows: Rows, task_id: TaskId) -> str | None:
    task = rows.task(task_id)
    if task.state is CLOSED:
        return None
    close(rows, task, Outcome.TIMEOUT, error=rules.task_timeout_error(task))
    return "tasks_timed_out"


def stop_orphan(rows: Rows, task_id: TaskId) -> str | None:
    if not is_orphan(rows, task_id):
        return None
    task = rows.task(task_id)
    caller = rows.caller_of(task)
    assert caller is not None
    stop(rows, task, rules.orphan_error(caller.id))
    return "orphans_stopped"


def is_orphan(rows: Rows, task_id: TaskId) -> bool:
    """Whether a task's caller is closed and it has not been stopped for that."""
    task = rows.find_task(task_id)
    if task is None or task.state is CLOSED or task.stop_requested:
        return False
    caller = rows.caller_of(task)
    return caller is not None and caller.state is CLOSED
