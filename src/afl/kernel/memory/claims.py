"""Which tasks a worker gets."""

from __future__ import annotations

from collections.abc import Iterable

from afl.kernel import rules
from afl.kernel.errors import NotFound
from afl.kernel.memory.copies import call_out, task_out
from afl.kernel.memory.heap import KeyedHeap
from afl.kernel.memory.rows import Rows
from afl.kernel.memory.states import READY
from afl.kernel.memory.transitions import take
from afl.kernel.model import Claim, ClaimRequest, Task, TaskId, WorkerId
from afl.kernel.rules import ClaimKey


def claim(rows: Rows, request: ClaimRequest) -> list[Claim]:
    check_live(rows, request.worker)
    if taken := taken_by_token(rows, request):
        return [claim_out(rows, task) for task in taken]
    return claim_ready(rows, request, request.n)


def claim_ready(rows: Rows, request: ClaimRequest, n: int) -> list[Claim]:
    """Takes up to so many of the ready tasks that fit, the first in order first."""
    rows.offer_due()
    heaps = _heaps(rows, request)
    claims: list[Claim] = []
    while len(claims) < n and (first := _first(heaps)) is not None:
        task = take(rows, rows.tasks[first], request.worker, request.token)
        claims.append(claim_out(rows, task))
    return claims


def claim_one(rows: Rows, worker: WorkerId, task: TaskId) -> Claim | None:
    """Takes one task by its id, if it is ready."""
    row = rows.tasks.get(task)
    if row is None or row.state is not READY or row.run_at > rows.now:
        return None
    return claim_out(rows, take(rows, row, worker, None))


def claim_eagerly(rows: Rows, request: ClaimRequest, callees: Iterable[TaskId]) -> list[Claim]:
    """Takes those of the new callees that fit, as if they had been claimed right away."""
    fitting = [
        task
        for task in (rows.tasks[callee] for callee in callees)
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
    row = rows.workers.get(worker)
    if row is None or not rules.is_live(row, rows.now):
        raise NotFound(f"there is no live worker {worker}; register it before it claims")


def may_claim(rows: Rows, request: ClaimRequest) -> bool:
    worker = rows.workers.get(request.worker)
    return worker is not None and rules.is_live(worker, rows.now)


def taken_by_token(rows: Rows, request: ClaimRequest) -> list[Task]:
    """What an earlier request with the same token took and the worker still holds, in the order of
    the fences."""
    if request.token is None:
        return []
    taken = rows.by_token.get((request.worker, request.token), ())
    return sorted((rows.tasks[task] for task in taken), key=lambda task: task.fence or 0)


def claim_out(rows: Rows, task: Task) -> Claim:
    assert task.fence is not None
    return Claim(task_out(task), task.fence, tuple(map(call_out, rows.replies_of(task.id))))


_Heap = KeyedHeap[TaskId, ClaimKey]


def _heaps(rows: Rows, request: ClaimRequest) -> list[_Heap]:
    """The ready tasks that fit, one heap for each full name."""
    full_names = {
        (list_, full)
        for list_ in request.lists
        for name in request.names
        for full in ((name,) if "." in name else rows.full_names.get((list_, name), ()))
    }
    return [rows.ready[key] for key in full_names if rows.ready.get(key)]


def _first(heaps: list[_Heap]) -> TaskId | None:
    firsts = [first for heap in heaps if (first := heap.first()) is not None]
    return min(firsts)[1] if firsts else None
