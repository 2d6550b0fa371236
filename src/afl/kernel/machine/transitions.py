"""How tasks and calls move from one state to the next. Each function leaves the rows consistent."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TypedDict

from afl.base.ids import IdSource
from afl.kernel import rules
from afl.kernel.errors import BadRequest
from afl.kernel.machine.copies import changed
from afl.kernel.machine.rows import Rows
from afl.kernel.machine.states import CLOSED, OPEN, QUEUED, READY, RUNNING, WAITING
from afl.kernel.model import (
    NO_RETRY,
    Call,
    CallId,
    CallSpec,
    CallStatus,
    Close,
    Fence,
    Json,
    Loss,
    Outcome,
    Reason,
    RunId,
    Stopped,
    Task,
    TaskId,
    TaskSpec,
    Wake,
    WorkerId,
)
from afl.kernel.requests import json_copy


class Progress(TypedDict, total=False):
    """What else changes in a task that moves on. A task is copied once for all of it."""

    committed_fence: Fence
    commits: int
    seq: int
    crashes: int
    failures: int
    dead: bool


_NO_PROGRESS: Progress = {}
_NEVER = datetime.min.replace(tzinfo=UTC)
#: A task to which nothing has happened; what its spec says is still missing.
_BLANK = Task(
    id=TaskId(""),
    tenant="",
    run=RunId(""),
    kind="",
    name="",
    list="",
    lane=None,
    hold=True,
    parent_call=None,
    depth=0,
    state=READY,
    outcome=None,
    priority=0,
    run_at=_NEVER,
    wake=Wake.ALL,
    fence=None,
    worker=None,
    claim_token=None,
    committed_fence=None,
    commits=0,
    retry=NO_RETRY,
    crashes=0,
    max_crashes=0,
    failures=0,
    deadline=None,
    stop_requested=False,
    input=None,
    result=None,
    error=None,
    reason=None,
    idem=None,
    trace=None,
    seq=0,
    dead=False,
    redrives=None,
    created_at=_NEVER,
    closed_at=None,
)


def make_root(rows: Rows, ids: IdSource, spec: TaskSpec, redrives: TaskId | None = None) -> Task:
    """A task without a caller: ready, or queued for its lane."""
    task = spec.id or TaskId(ids.new_id())
    if rows.find_task(task) is not None:
        raise BadRequest(f"there is a task {task} already; an id is used once")
    run = spec.run if spec.run is not None else RunId(task)
    deadline = rules.root_deadline(spec, rows.now)
    return _place(rows, _new(rows, task, spec, run, deadline=deadline, redrives=redrives))


def open_call(rows: Rows, ids: IdSource, caller: Task, spec: CallSpec) -> Call:
    """A call with the task that answers it. # I5, I6"""
    depth = rules.callee_depth(caller)
    run = rules.callee_run(spec.task, caller)
    if spec.task.lane is not None:
        rules.refuse_lane_cycle(spec.task, _ancestry(rows, caller))
    deadline = rules.call_deadline(spec, caller, rows.now)
    call = CallId(ids.new_id())
    task = spec.task.id or TaskId(ids.new_id())
    made = rows.put_call(
        Call(call, run, caller.id, spec.key, task, OPEN, deadline, None, None, False)
    )
    own = rules.callee_deadline(spec, deadline, rows.now)
    _place(rows, _new(rows, task, spec.task, run, deadline=own, parent_call=call, depth=depth))
    return made


def take(rows: Rows, task: Task, worker: WorkerId, token: str | None) -> Task:
    """Into a worker's hands, with a fence of its own. # I1, I3, I9"""
    return rows.put_task(
        changed(
            task,
            state=RUNNING,
            fence=rows.next_fence(),
            worker=worker,
            claim_token=token,
            reason=None,
        )
    )


def suspend(rows: Rows, task: Task, progress: Progress) -> None:
    """Out of the worker's hands, until there are answers. # I6"""
    if task.stop_requested:
        close(rows, task, Outcome.CANCELED, error=task.error, progress=progress)
        return
    untaken = rows.untaken_count(task.id)
    state = rules.state_after_suspend(task.wake, rows.open_count(task.id), untaken)
    if state is READY:
        reason = rules.reason_ready(rows.now, untaken > 0, rows.now)
        _make_ready(rows, task, rows.now, reason, progress)
        return
    first = rows.first_open(task.id)
    assert first is not None
    rows.put_task(
        changed(
            task,
            state=state,
            fence=None,
            worker=None,
            claim_token=None,
            reason=rules.reason_waiting(first, rows.now),
            **progress,
        )
    )
    promote(rows, task)


def finish(rows: Rows, task: Task, how: Close, progress: Progress) -> None:
    """Closes a task as its worker says, or makes it ready to be tried again."""
    result, error = json_copy(how.result, "the result"), json_copy(how.error, "the error")
    if how.outcome is Outcome.FAILED:
        progress["failures"] = task.failures + 1
    if rules.failure_retries(task, how):
        run_at = rows.now + rules.retry_wait(task)
        reason = rules.reason_retry(run_at, rows.now)
        _make_ready(rows, changed(task, error=error), run_at, reason, progress)
        return
    progress["dead"] = rules.failure_is_dead(task, how)
    close(rows, task, how.outcome, result=result, error=error, progress=progress)


def close(
    rows: Rows,
    task: Task,
    outcome: Outcome,
    *,
    result: Json = None,
    error: Json = None,
    progress: Progress = _NO_PROGRESS,
) -> None:
    """The end of a task: its one closed event, its answer, and the lane for the next. # I4"""
    closed = rows.put_task(
        changed(
            task,
            state=CLOSED,
            outcome=outcome,
            result=result,
            fence=None,
            worker=None,
            claim_token=None,
            reason=None,
            closed_at=rows.now,
            error=error,
            **progress,
        )
    )
    rows.append_outbox("closed", task.id, task.run, rules.closed_event(closed))
    if task.parent_call is not None:
        call = rows.call(task.parent_call)
        answer(rows, call, rules.status_of(outcome), rules.answer_of(closed))
    promote(rows, task)


def answer(rows: Rows, call: Call, status: CallStatus, body: Json) -> bool:
    """Gives a call its answer, unless it has one. # I5"""
    if call.status is not OPEN:
        if rules.same_answer(call, status, body):
            return True
        rows.append_outbox("late", call.caller, call.run, rules.late_event(call, status, body))
        return False
    rows.put_call(changed(call, status=status, reply=body, replied_at=rows.now))
    caller = rows.task(call.caller)
    if caller.state is WAITING and rules.wakes(caller.wake, rows.open_count(caller.id)):
        _wake(rows, caller)
    return True


def stop(rows: Rows, task: Task, error: Json, *, force: bool = False) -> Stopped:
    if task.state is CLOSED:
        return Stopped.ALREADY_CLOSED
    if task.state is not RUNNING or force:
        close(rows, task, Outcome.CANCELED, error=error)
        return Stopped.CLOSED
    if not task.stop_requested:
        rows.put_task(
            changed(task, stop_requested=True, error=error, reason=rules.reason_stopping(rows.now))
        )
    return Stopped.REQUESTED


def recover(rows: Rows, task: Task) -> None:
    """A task whose worker is lost: again, or given up."""
    assert task.worker is not None
    assert task.fence is not None
    rows.add_loss(Loss(task.id, task.worker, task.fence, rows.now))
    if task.stop_requested:
        close(rows, task, Outcome.CANCELED, error=task.error)
        return
    crashes = task.crashes + 1
    progress: Progress = {"crashes": crashes}
    if rules.crash_is_final(crashes, task.max_crashes):
        progress["dead"] = True
        error = rules.crash_error(task, crashes)
        close(rows, task, Outcome.FAILED, error=error, progress=progress)
        return
    _make_ready(rows, task, rows.now, rules.reason_crashed(rows.now), progress)


def promote(rows: Rows, task: Task) -> None:
    """Gives the lane of a task that may have let go of it to the first in the queue. # I2, I7"""
    if task.lane is None:
        return
    if rows.holder(task.tenant, task.lane) is not None:
        return
    following = rows.first_queued(task.tenant, task.lane)
    if following is None:
        return
    run_at = max(following.run_at, rows.now)
    reason = rules.reason_ready(run_at, rows.untaken_count(following.id) > 0, rows.now)
    rows.put_task(changed(following, state=READY, run_at=run_at, reason=reason))


def _wake(rows: Rows, task: Task) -> None:
    if task.lane is None or task.hold:
        reason = rules.reason_ready(rows.now, True, rows.now)
        rows.put_task(changed(task, state=READY, run_at=rows.now, reason=reason))
        return
    # It let go of its lane while it waited, so it must queue for it like everybody else.
    reason = rules.reason_queued(rows.holder(task.tenant, task.lane), rows.now)
    rows.put_task(changed(task, state=QUEUED, run_at=rows.now, reason=reason))
    promote(rows, task)


def _place(rows: Rows, task: Task) -> Task:
    """Puts a new task where it belongs: in front of its lane, or behind who holds it. # I2, I7"""
    if task.lane is None or not rows.is_wanted(task.tenant, task.lane):
        return rows.put_task(task)
    reason = rules.reason_queued(rows.holder(task.tenant, task.lane), rows.now)
    return rows.put_task(changed(task, state=QUEUED, reason=reason))


def _ancestry(rows: Rows, task: Task | None) -> Iterator[Task]:
    """The task and its callers, up to the root."""
    while task is not None:
        yield task
        task = rows.caller_of(task)


def _make_ready(
    rows: Rows, task: Task, run_at: datetime, reason: Reason, progress: Progress
) -> None:
    """Out of a worker's hands, to be claimed again. # I3"""
    rows.put_task(
        changed(
            task,
            state=READY,
            run_at=run_at,
            fence=None,
            worker=None,
            claim_token=None,
            reason=reason,
            **progress,
        )
    )


def _new(
    rows: Rows,
    task: TaskId,
    spec: TaskSpec,
    run: RunId,
    *,
    deadline: datetime | None,
    parent_call: CallId | None = None,
    depth: int = 0,
    redrives: TaskId | None = None,
) -> Task:
    run_at = rows.now + spec.delay
    return changed(
        _BLANK,
        id=task,
        tenant=spec.tenant,
        run=run,
        kind=spec.kind,
        name=spec.name,
        list=spec.list,
        lane=spec.lane,
        hold=spec.hold,
        parent_call=parent_call,
        depth=depth,
        priority=spec.priority,
        run_at=run_at,
        wake=spec.wake,
        retry=spec.retry,
        max_crashes=spec.max_crashes,
        deadline=deadline,
        input=json_copy(spec.input, "the input"),
        reason=rules.reason_ready(run_at, False, rows.now),
        idem=spec.idem,
        trace=spec.trace,
        redrives=redrives,
        created_at=rows.now,
    )
