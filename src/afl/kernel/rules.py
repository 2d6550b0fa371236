"""The decisions of the kernel, as pure functions of rows and the time. Every store uses these, so
that no two stores can disagree about them.

What a store may take in is checked by `requests`; here everything is valid already.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from afl.kernel.errors import BadRequest, LaneCycle, TooDeep
from afl.kernel.model import (
    MAX_DEPTH,
    Call,
    CallSpec,
    CallStatus,
    CardHash,
    Close,
    Fence,
    Json,
    Outcome,
    Reason,
    ReasonCode,
    RunId,
    State,
    Task,
    TaskId,
    TaskSpec,
    Wake,
    Worker,
    WorkerState,
)

_STATUS_OF = {
    Outcome.SUCCESS: CallStatus.OK,
    Outcome.PARTIAL: CallStatus.OK,
    Outcome.FAILED: CallStatus.ERROR,
    Outcome.TIMEOUT: CallStatus.TIMEOUT,
    Outcome.CANCELED: CallStatus.CANCELED,
}
#: Beyond this the wait has long reached its cap; it keeps the power within what a float holds.
_MAX_DOUBLINGS = 64

ClaimKey = tuple[int, datetime, TaskId]


# Workers and claims


def is_live(worker: Worker, now: datetime) -> bool:
    """Whether a worker may claim: it renews in time and has not said that it ends."""
    return worker.expires_at > now and worker.state in (WorkerState.STARTUP, WorkerState.RUNNING)


def serves(names: Collection[str], name: str) -> bool:
    """Whether one of the names is this one, or its short form: `Pay` serves `billing.Pay`."""
    return name in names or name.rpartition(".")[2] in names


def worker_serves(worker: Worker, task: Task, now: datetime) -> bool:
    return is_live(worker, now) and task.list in worker.lists and serves(worker.handlers, task.name)


def claim_key(priority: int, run_at: datetime, task: TaskId) -> ClaimKey:
    """Sorts tasks into the order in which they are claimed."""
    return (-priority, run_at, task)


# Time


def crash_is_final(crashes: int, max_crashes: int) -> bool:
    """Whether a task that has now lost its worker so many times is given up."""
    return crashes > max_crashes


def failure_retries(task: Task, close: Close) -> bool:
    """Whether closing the task this way makes it ready again instead."""
    return (
        close.outcome is Outcome.FAILED
        and not close.permanent
        and not task.stop_requested
        and task.failures < task.retry.max_failures
    )


def failure_is_dead(task: Task, close: Close) -> bool:
    """Whether a task that closes this way was given up: it was to be retried, and still failed."""
    return (
        close.outcome is Outcome.FAILED and not task.stop_requested and task.retry.max_failures > 0
    )


def retry_wait(task: Task) -> timedelta:
    """How long a task waits after the failure that comes on top of those it has."""
    retry, attempt = task.retry, task.failures + 1
    factor = retry.backoff ** min(attempt - 1, _MAX_DOUBLINGS)
    seconds = min(retry.delay.total_seconds() * factor, retry.max_delay.total_seconds())
    if retry.jitter:
        # From the id and not from chance, so that a store that is asked twice answers the same.
        digest = hashlib.sha256(f"{task.id}:{attempt}".encode()).digest()
        seconds *= 1 - int.from_bytes(digest[:8], "big") / 2**65
    return timedelta(seconds=seconds)


def call_deadline(call: CallSpec, caller: Task, now: datetime) -> datetime:
    """When an answer is too late. Never later than the caller's own deadline. # I11"""
    return _earlier(now + call.timeout, caller.deadline)


def callee_deadline(call: CallSpec, deadline: datetime, now: datetime) -> datetime:
    """When the callee of a call with this deadline is closed. # I11"""
    return deadline if call.task.timeout is None else min(deadline, now + call.task.timeout)


def root_deadline(spec: TaskSpec, now: datetime) -> datetime | None:
    return None if spec.timeout is None else now + spec.timeout


def _earlier(one: datetime, other: datetime | None) -> datetime:
    return one if other is None or one < other else other


# Calls


def callee_depth(caller: Task) -> int:
    """The depth of a task that this one calls. # I11"""
    if caller.depth + 1 >= MAX_DEPTH:
        raise TooDeep(
            f"task {caller.id} is {caller.depth} calls deep and calls may nest up to "
            f"{MAX_DEPTH - 1}; look for a task that calls itself"
        )
    return caller.depth + 1


def callee_run(spec: TaskSpec, caller: Task) -> RunId:
    if spec.run not in (None, caller.run):
        raise BadRequest(
            f"task {caller.id} of run {caller.run} calls into run {spec.run}; a callee belongs to "
            "its caller's run: leave `run` out, or enqueue the task without a call"
        )
    return caller.run


def refuse_lane_cycle(spec: TaskSpec, ancestors: Iterable[Task]) -> None:
    """A callee must not want a lane that one of its callers keeps while it waits. # I11

    A caller that lets go of its lane while it waits (`hold` is false) is no obstacle.
    """
    for ancestor in ancestors:
        if (
            ancestor.lane == spec.lane
            and ancestor.tenant == spec.tenant
            and ancestor.hold
            and ancestor.state is not State.CLOSED
        ):
            raise LaneCycle(
                f"the callee wants lane '{spec.lane}', which its caller {ancestor.id} holds until "
                "the callee has answered; use another lane, or a caller with hold=False"
            )


def status_of(outcome: Outcome) -> CallStatus:
    """What a task that ended this way answers to its caller."""
    return _STATUS_OF[outcome]


def answer_of(task: Task) -> Json:
    """The body of a closed task's answer: the result, or what went wrong."""
    assert task.outcome is not None
    return task.result if status_of(task.outcome) is CallStatus.OK else task.error


def same_answer(call: Call, status: CallStatus, body: Json) -> bool:
    return call.status is status and same_json(call.reply, body)


def same_json(one: Json, other: Json) -> bool:
    """Whether two values are the same JSON: unlike in Python, true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and one == other


# States and their reasons


def wakes(wake: Wake, open_calls: int) -> bool:
    """Whether a waiting task that was just answered becomes ready."""
    return wake is Wake.ANY or open_calls == 0


def state_after_suspend(wake: Wake, open_calls: int, untaken: int) -> State:
    """Where a suspended task goes, by its open calls and the answers it has not taken. # I6"""
    if open_calls == 0 or (wake is Wake.ANY and untaken > 0):
        return State.READY
    return State.WAITING


def reason_ready(run_at: datetime, answered: bool, now: datetime) -> Reason:
    if run_at > now:
        return Reason(ReasonCode.DELAYED, now, until=run_at)
    return Reason(ReasonCode.ANSWERED if answered else ReasonCode.CLAIMABLE, now)


def reason_retry(run_at: datetime, now: datetime) -> Reason:
    return Reason(ReasonCode.RETRY, now, until=run_at)


def reason_crashed(now: datetime) -> Reason:
    return Reason(ReasonCode.CRASHED, now, until=now)


def reason_queued(holder: TaskId | None, now: datetime) -> Reason:
    return Reason(ReasonCode.LANE_HELD, now, by=holder)


def reason_waiting(first: Call, now: datetime) -> Reason:
    """By the open call with the first deadline."""
    return Reason(ReasonCode.CALLS_OPEN, now, until=first.deadline, by=first.id)


def reason_stopping(now: datetime) -> Reason:
    return Reason(ReasonCode.STOPPING, now)


def present_reason(
    task: Task, *, now: datetime, served: bool, holder: TaskId | None, first_open: Call | None
) -> Reason | None:
    """The reason in the row, brought up to date with what has happened around the task since."""
    reason = task.reason
    if reason is None:
        return None
    if task.state is State.QUEUED and holder is not None:
        return Reason(ReasonCode.LANE_HELD, reason.since, by=holder)
    if task.state is State.WAITING and first_open is not None:
        return Reason(
            ReasonCode.CALLS_OPEN, reason.since, until=first_open.deadline, by=first_open.id
        )
    if task.state is State.READY and task.run_at <= now:
        if not served:
            return Reason(ReasonCode.NO_WORKER, reason.since)
        if reason.code is ReasonCode.DELAYED:
            return Reason(ReasonCode.CLAIMABLE, task.run_at)
    return reason


# What is written down


def card_hash(kind: str, content: Json) -> CardHash:
    """The name of a card: equal cards have equal names, everywhere."""
    text = json.dumps(
        [kind, content], ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    )
    return CardHash(f"sha256:{hashlib.sha256(text.encode()).hexdigest()}")


def closed_event(task: Task) -> Json:
    """The body of the one entry that a closing task writes to the outbox. # I4"""
    assert task.outcome is not None
    return {
        "outcome": task.outcome.value,
        "kind": task.kind,
        "name": task.name,
        "parent_call": task.parent_call,
        "dead": task.dead,
    }


def late_event(call: Call, status: CallStatus, body: Json) -> Json:
    """The body of the outbox entry for an answer that came after another. # I5"""
    return {"call": call.id, "key": call.key, "status": status.value, "body": body}


def call_timeout_error(call: Call) -> Json:
    return {"code": "call_timeout", "message": f"call '{call.key}' was not answered in time"}


def task_timeout_error(task: Task) -> Json:
    return {"code": "timeout", "message": f"'{task.name}' did not end before its deadline"}


def crash_error(task: Task, crashes: int) -> Json:
    return {
        "code": "crashed",
        "message": f"'{task.name}' was given up: it lost its worker {crashes} times",
    }


def orphan_error(caller: TaskId) -> Json:
    return {"code": "orphan", "message": f"the caller {caller} is closed"}


# Commits


def is_repeat(task: Task, fence: Fence, number: int) -> bool:
    """Whether this commit was taken already."""
    return task.committed_fence == fence and number < task.commits


def refuse_gap(task: Task, fence: Fence, number: int) -> None:
    """The commits under one fence are numbered without gaps."""
    expected = task.commits if task.committed_fence == fence else 0
    if number != expected:
        raise BadRequest(
            f"commit {number} under fence {fence} of task {task.id} comes out of order; the next "
            f"number is {expected}"
        )


def refuse_applied(call: Call | None, caller: Task) -> None:
    """A commit takes in answers of its own task's calls, once they are there."""
    if call is None or call.caller != caller.id:
        raise BadRequest(f"`applied` names a call that task {caller.id} never made")
    if call.status is CallStatus.OPEN:
        raise BadRequest(f"call '{call.key}' has no answer yet that could be applied")


def redrive_spec(dead: Task) -> TaskSpec:
    """The same work, with its whole time before it."""
    return TaskSpec(
        kind=dead.kind,
        name=dead.name,
        run=dead.run,
        tenant=dead.tenant,
        list=dead.list,
        lane=dead.lane,
        hold=dead.hold,
        priority=dead.priority,
        timeout=None if dead.deadline is None else dead.deadline - dead.created_at,
        wake=dead.wake,
        retry=dead.retry,
        max_crashes=dead.max_crashes,
        input=dead.input,
        trace=dead.trace,
    )
