"""Joins: a task that calls several others and answers for all of them.

The first claim opens every call in one commit. Every answer wakes the join, which decides again
from the calls alone: `decide` is pure. When it closes with calls still open, the kernel's sweep
stops those callees.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from afl.kernel.errors import BadRequest, Refused
from afl.kernel.model import (
    Call,
    CallSpec,
    CallStatus,
    Claim,
    Close,
    Commit,
    Json,
    Outcome,
    Suspend,
    Task,
    TaskSpec,
    Wake,
)
from afl.kernel.port import Store
from afl.turns.errors import BadBrief
from afl.turns.grip import Grip
from afl.turns.model import JOIN, JOIN_NAME
from afl.turns.ports import NO_TIMEOUT
from afl.turns.serving import Ring
from afl.turns.task_specs import spec_from_json, spec_to_json

_KEY = "branch:{index}"
#: How much earlier than the join its branches are over, so that it can still say what came of them.
_SLACK, _SLACK_SHARE = timedelta(seconds=5), 10


class JoinMode(Enum):
    """When a join is decided."""

    ALL = "all"  # every branch has answered
    ANY = "any"  # the first has succeeded
    QUORUM = "quorum"  # so many have succeeded
    FAIL_FAST = "fail_fast"  # every branch has answered, or the first has failed


@dataclass(frozen=True, slots=True)
class Joining:
    """What a join is asked for."""

    mode: JoinMode
    branches: tuple[TaskSpec, ...]
    quorum: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """How a join ends: `success`, `partial`, `failed` or `timeout`, and what each branch said."""

    status: str
    results: tuple[dict[str, Json], ...]


def join_spec(
    joining: Joining,
    *,
    tenant: str = "default",
    priority: int = 0,
    timeout: timedelta | None = None,
    idem: str | None = None,
    trace: str | None = None,
) -> TaskSpec:
    """The task of a join."""
    given: dict[str, Json] = {
        "mode": joining.mode.value,
        "branches": [spec_to_json(branch) for branch in joining.branches],
    }
    if joining.mode is JoinMode.QUORUM:
        given["quorum"] = joining.quorum
    return TaskSpec(
        kind=JOIN,
        name=JOIN_NAME,
        tenant=tenant,
        priority=priority,
        timeout=timeout,
        wake=Wake.ANY,
        input=given,
        idem=idem,
        trace=trace,
    )


def read_join(given: Json) -> Joining:
    """The input of a join. Raises `BadBrief`."""
    if not isinstance(given, dict) or not isinstance(given.get("branches"), list):
        raise BadBrief("a join is given a `mode` and a list of `branches`")
    modes = [mode.value for mode in JoinMode]
    if given.get("mode") not in modes:
        raise BadBrief(f"the `mode` of a join is one of {', '.join(modes)}")
    mode, branches, quorum = JoinMode(given["mode"]), given["branches"], given.get("quorum", 0)
    assert isinstance(branches, list)
    if not branches:
        raise BadBrief("a join needs at least one branch")
    is_reachable = isinstance(quorum, int) and 1 <= quorum <= len(branches)
    if mode is JoinMode.QUORUM and not is_reachable:
        raise BadBrief(f"the `quorum` of a join of {len(branches)} is from 1 to {len(branches)}")
    specs = tuple(spec_from_json(branch) for branch in branches)
    return Joining(mode, specs, quorum if isinstance(quorum, int) else 0)


def branch_calls(joining: Joining, task: Task) -> tuple[CallSpec, ...]:
    """The calls of all branches. They are over a little before the join's own deadline is."""
    longest = NO_TIMEOUT
    if task.deadline is not None:
        whole = task.deadline - task.created_at
        longest = whole - min(_SLACK, whole / _SLACK_SHARE)
    return tuple(
        CallSpec(_KEY.format(index=index), spec, min(longest, spec.timeout or longest))
        for index, spec in enumerate(joining.branches)
    )


def decide(joining: Joining, calls: Sequence[Call]) -> Decision | None:
    """How the join ends, by the answers that there are; None if it has to wait for more."""
    by_key = {call.key: call for call in calls}
    branches = [by_key.get(_KEY.format(index=i)) for i in range(len(joining.branches))]
    statuses = [CallStatus.OPEN if each is None else each.status for each in branches]
    good, open_ = statuses.count(CallStatus.OK), statuses.count(CallStatus.OPEN)
    wanted = {JoinMode.ANY: 1, JoinMode.QUORUM: joining.quorum}.get(joining.mode, len(branches))
    if good >= wanted:
        status = "success"
    elif open_ and (joining.mode is JoinMode.ALL or good + open_ >= wanted):
        return None
    else:
        status = _status_of_failure(joining.mode, statuses)
    return Decision(status, tuple(_result(i, call) for i, call in enumerate(branches)))


def _status_of_failure(mode: JoinMode, statuses: Iterable[CallStatus]) -> str:
    answered = {status for status in statuses if status is not CallStatus.OPEN}
    if CallStatus.OK in answered and mode is not JoinMode.FAIL_FAST:
        return "partial"
    return "timeout" if answered == {CallStatus.TIMEOUT} else "failed"


def _result(index: int, call: Call | None) -> dict[str, Json]:
    status = CallStatus.OPEN if call is None else call.status
    told: dict[str, Json] = {"index": index, "status": status.value}
    if call is not None and status is not CallStatus.OPEN:
        told["result" if status is CallStatus.OK else "error"] = call.reply
    return told


def closing(decision: Decision) -> Close:
    """What the kernel is told."""
    body: dict[str, Json] = {"status": decision.status, "results": list(decision.results)}
    if decision.status in ("success", "partial"):
        return Close(Outcome(decision.status), result=body)
    good = sum(result["status"] == "ok" for result in decision.results)
    message = f"{good} of {len(decision.results)} branches succeeded"
    error: dict[str, Json] = {"code": f"join_{decision.status}", "message": message, **body}
    return Close(Outcome(decision.status), error=error, permanent=True)


class JoinAttendant:
    """Works on joins. See `serving.Attendant`."""

    def __init__(self, kernel: Store, ring: Ring) -> None:
        self._kernel = kernel
        self._ring = ring

    def names(self) -> tuple[str, ...]:
        return (JOIN_NAME,)

    async def run(self, claim: Claim, grip: Grip) -> None:
        commit = await grip.patiently(lambda: asyncio.to_thread(self._step, claim))
        try:
            await grip.commit(self._kernel, commit)
        except Refused as error:
            await grip.commit(self._kernel, Commit(claim.fence, _refused(error.message)))
        self._ring({call.task.list for call in commit.calls} | {claim.task.list})

    def _step(self, claim: Claim) -> Commit:
        task = claim.task
        try:
            joining = read_join(task.input)
        except BadBrief as error:
            return Commit(claim.fence, _refused(error.message))
        calls = self._kernel.calls_of(task.id)
        if not calls:
            return Commit(claim.fence, Suspend(), calls=branch_calls(joining, task))
        decision = decide(joining, calls)
        applied = tuple(reply.id for reply in claim.replies)
        then = Suspend() if decision is None else closing(decision)
        return Commit(claim.fence, then, applied=applied)


def _refused(message: str) -> Close:
    error: Json = {"code": BadRequest.code, "message": message}
    return Close(Outcome.FAILED, error=error, permanent=True)
