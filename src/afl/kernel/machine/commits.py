"""One step of work: what a worker changes with the fence of a task that it holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from afl.base.ids import IdSource
from afl.kernel import rules
from afl.kernel.errors import Fenced
from afl.kernel.machine.claims import claim_eagerly, claim_out, may_claim, taken_by_token
from afl.kernel.machine.copies import changed, task_out
from afl.kernel.machine.rows import Rows
from afl.kernel.machine.states import CLOSED
from afl.kernel.machine.transitions import Progress, finish, open_call, suspend
from afl.kernel.model import (
    CallId,
    CallSpec,
    Card,
    CardHash,
    CardSpec,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Committed,
    Fence,
    Suspend,
    Task,
    TaskId,
)
from afl.kernel.requests import check_commit, json_copy


@dataclass(slots=True)
class Step:
    """What one commit came to so far."""

    task: TaskId
    repeated: bool
    calls: dict[str, CallId] = field(default_factory=dict)
    new_callees: list[TaskId] = field(default_factory=list)
    eager: list[Claim] = field(default_factory=list)


def apply(rows: Rows, ids: IdSource, commit: Commit) -> Step:
    check_commit(commit)
    task = _task_of(rows, commit)
    if rules.is_repeat(task, commit.fence, commit.number):
        return Step(task.id, True, _known(rows, task, commit))
    rules.refuse_gap(task, commit.fence, commit.number)
    progress: Progress = {
        "committed_fence": commit.fence,
        "commits": commit.number + 1,
        "crashes": 0,
        "seq": task.seq + len(commit.cards),
    }
    _append_cards(rows, task, commit.cards)
    _take_answers(rows, task, commit.applied)
    step = Step(task.id, False)
    known = _known(rows, task, commit)
    for call in commit.calls:
        _call(rows, ids, task, call, known, step)
    if isinstance(commit.then, Close):
        finish(rows, task, commit.then, progress)
    elif isinstance(commit.then, Suspend):
        suspend(rows, task, progress)
    else:
        rows.put_task(changed(task, **progress))
    return step


def hand_out(rows: Rows, steps: list[Step], eager: ClaimRequest | None) -> list[Committed]:
    """The answers, with the callees that the committing worker gets right away."""
    if eager is not None:
        _claim_again(rows, steps, taken_by_token(rows, eager))
        if may_claim(rows, eager):
            _claim_callees(rows, steps, eager)
    return _answers(rows, steps)


def hand_on(
    rows: Rows, steps: list[Step], request: ClaimRequest
) -> tuple[list[Committed], list[Claim], int]:
    """The answers, the callees that the worker goes on with, and how many more tasks it may claim.

    If the answer to the same request was lost, they are what it brought then, and there is no more.
    """
    if again := _claim_again(rows, steps, taken_by_token(rows, request)):
        return _answers(rows, steps), again, 0
    if not may_claim(rows, request):
        return _answers(rows, steps), [], 0
    claims = _claim_callees(rows, steps, request)
    return _answers(rows, steps), claims, request.n - len(claims)


def extend(rows: Rows, fence: Fence, by: timedelta) -> datetime | None:
    """Moves the deadlines of a held task and of its call; answers the first. # I11"""
    task = rows.held_by_fence(fence)
    if task is None:
        raise _fenced(fence)
    until = rows.now + by
    deadlines = []
    if task.parent_call is not None:
        call = rows.call(task.parent_call)
        until = min(until, rows.task(call.caller).deadline or until)
        if call.deadline < until:
            call = rows.put_call(changed(call, deadline=until))
        deadlines.append(call.deadline)
    if task.deadline is not None:
        if task.deadline < until:
            task = rows.put_task(changed(task, deadline=until))
        deadlines.append(task.deadline or until)
    return min(deadlines, default=None)


def _task_of(rows: Rows, commit: Commit) -> Task:
    """The task whose fence this is, or was when it was last committed. # I1"""
    held = rows.held_by_fence(commit.fence)
    if held is not None:
        return held
    committed = rows.committed_by_fence(commit.fence)
    if committed is not None and rules.is_repeat(committed, commit.fence, commit.number):
        return committed
    raise _fenced(commit.fence)


def _fenced(fence: Fence) -> Fenced:
    return Fenced(f"fence {fence} is not held; nothing was written")


def _append_cards(rows: Rows, task: Task, specs: tuple[CardSpec, ...]) -> None:
    hashes: list[CardHash] = []
    for spec in specs:
        content = json_copy(spec.content, "a card")
        card = Card(rules.card_hash(spec.kind, content), spec.kind, content)
        rows.put_card(card)
        hashes.append(card.hash)
    if hashes:
        rows.extend_box(task.id, hashes)


def _take_answers(rows: Rows, task: Task, applied: tuple[CallId, ...]) -> None:
    for call_id in applied:
        call = rows.find_call(call_id)
        rules.refuse_applied(call, task)
        if call is not None and not call.applied:
            rows.put_call(changed(call, applied=True))


def _known(rows: Rows, task: Task, commit: Commit) -> dict[str, CallId]:
    """Those of a commit's calls that were made before."""
    return rows.calls_under(task.id, [call.key for call in commit.calls]) if commit.calls else {}


def _call(
    rows: Rows,
    ids: IdSource,
    task: Task,
    spec: CallSpec,
    known: dict[str, CallId],
    step: Step,
) -> None:
    if spec.key in known:  # I5
        step.calls[spec.key] = known[spec.key]
        return
    call = open_call(rows, ids, task, spec)
    assert call.callee is not None
    step.calls[spec.key] = call.id
    step.new_callees.append(call.callee)


def _answers(rows: Rows, steps: list[Step]) -> list[Committed]:
    return [
        Committed(task_out(rows.task(step.task)), step.calls, tuple(step.eager)) for step in steps
    ]


def _claim_again(rows: Rows, steps: list[Step], taken: list[Task]) -> list[Claim]:
    """What the worker got when the same request was made before."""
    claims = [claim_out(rows, task) for task in taken]
    for claim in claims:
        for step in steps:
            if step.repeated and claim.task.parent_call in step.calls.values():
                step.eager.append(claim)
    return claims


def _claim_callees(rows: Rows, steps: list[Step], eager: ClaimRequest) -> list[Claim]:
    """Takes the new callees that fit."""
    maker = {
        callee: step
        for step in steps
        if rows.task(step.task).state is not CLOSED
        for callee in step.new_callees
    }
    claims = claim_eagerly(rows, eager, maker) if maker else []
    for claim in claims:
        maker[claim.task.id].eager.append(claim)
    return claims
