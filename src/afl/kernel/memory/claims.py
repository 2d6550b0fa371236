"""Which tasks a worker gets."""

from __future__ import annotations

from afl.kernel.machine.claims import check_live, claim_out, taken_by_token
from afl.kernel.machine.transitions import take
from afl.kernel.memory.heap import KeyedHeap
from afl.kernel.memory.rows import Rows
from afl.kernel.model import Claim, ClaimRequest, TaskId
from afl.kernel.rules import ClaimKey

_Heap = KeyedHeap[TaskId, ClaimKey]


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
