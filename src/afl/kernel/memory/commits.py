"""One step of work: what a worker changes with the fence of a task that it holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from afl.base.ids import IdSource
from afl.kernel import rules
from afl.kernel.errors import Fenced
from afl.kernel.memory.claims import claim_eagerly, claim_out, taken_by_token
from afl.kernel.memory.copies import changed, task_out
from afl.kernel.memory.rows import Rows
from afl.kernel.memory.transitions import Progress, finish, open_call, suspend
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
    State,
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
        known = rows.calls_of.get(task.id, {})
        return Step(task.id, True, {c.key: known[c.key] for c in commit.calls if c.key in known})
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
    for call in commit.calls:
        _call(rows, ids, task, call, step)
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
        _claim_callees(rows, steps, eager)
    return [
        Committed(task_out(rows.tasks[step.task]), step.calls, tuple(step.eager)) for step in steps
    ]


def _task_of(rows: Rows, commit: Commit) -> Task:
    """The task whose fence this is, or was when it was last committed. # I1"""
    held = rows.by_fence.get(commit.fence)
    if held is not None:
        return rows.tasks[held]
    committed = rows.by_committed_fence.get(commit.fence)
    if committed is not None:
        task = rows.tasks[committed]
        if rules.is_repeat(task, commit.fence, commit.number):
            return task
    raise Fenced(f"fence {commit.fence} is not held; nothing was written")


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
        call = rows.calls.get(call_id)
        rules.refuse_applied(call, task)
        if call is not None and not call.applied:
            rows.put_call(changed(call, applied=True))


def _call(rows: Rows, ids: IdSource, task: Task, spec: CallSpec, step: Step) -> None:
    known = rows.calls_of.get(task.id, {}).get(spec.key)
    if known is not None:  # I5
        step.calls[spec.key] = known
        return
    call = open_call(rows, ids, task, spec)
    assert call.callee is not None
    step.calls[spec.key] = call.id
    step.new_callees.append(call.callee)


def _claim_callees(rows: Rows, steps: list[Step], eager: ClaimRequest) -> None:
    """What the worker gets, or got when the same commit was made before."""
    for task in taken_by_token(rows, eager):
        for step in steps:
            if step.repeated and task.parent_call in step.calls.values():
                step.eager.append(claim_out(rows, task))
    maker = {
        callee: step
        for step in steps
        if rows.tasks[step.task].state is not State.CLOSED
        for callee in step.new_callees
    }
    for claim in claim_eagerly(rows, eager, maker):
        maker[claim.task.id].eager.append(claim)
