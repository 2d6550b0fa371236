"""Tasks in a worker's hands: who may take them, and what comes along."""

from __future__ import annotations

from collections.abc import Iterable

from afl.kernel import rules
from afl.kernel.errors import NotFound
from afl.kernel.machine.copies import call_out, task_out
from afl.kernel.machine.rows import Rows
from afl.kernel.machine.states import READY
from afl.kernel.machine.transitions import take
from afl.kernel.model import Claim, ClaimRequest, Task, TaskId, WorkerId


def claim_one(rows: Rows, worker: WorkerId, task: TaskId) -> Claim | None:
    """Takes one task by its id, if it is ready."""
    row = rows.find_task(task)
    if row is None or row.state is not READY or row.run_at > rows.now:
        return None
    return claim_out(rows, take(rows, row, worker, None))


def claim_eagerly(rows: Rows, request: ClaimRequest, callees: Iterable[TaskId]) -> list[Claim]:
    """Takes those of the new callees that fit, as if they had been claimed right away."""
    fitting = [
        task
        for task in (rows.task(callee) for callee in callees)
        if task.state is READY
        and task.run_at <= rows.now
        and task.list in request.lists
        and rules.serves(request.names, task.name)
    ]
    fitting.sort(key=lambda task: rules.claim_key(task.priority, task.run_at, task.id))
    return [
        claim_out(rows, take(rows, task, request.worker, request.token))
        for task in fitting[: max(request.n, 0)]
    ]


def check_live(rows: Rows, worker: WorkerId) -> None:
    row = rows.find_worker(worker)
    if row is None or not rules.is_live(row, rows.now):
        raise NotFound(f"there is no live worker {worker}; register it before it claims")


def may_claim(rows: Rows, request: ClaimRequest) -> bool:
    worker = rows.find_worker(request.worker)
    return worker is not None and rules.is_live(worker, rows.now)


def taken_by_token(rows: Rows, request: ClaimRequest) -> list[Task]:
    """What an earlier request with the same token took and the worker still holds, in the order of
    the fences."""
    if request.token is None:
        return []
    taken = rows.taken(request.worker, request.token)
    return sorted(taken, key=lambda task: task.fence or 0)


def claim_out(rows: Rows, task: Task) -> Claim:
    assert task.fence is not None
    return Claim(task_out(task), task.fence, tuple(map(call_out, rows.replies_of(task.id))))
