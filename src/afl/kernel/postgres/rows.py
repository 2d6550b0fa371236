"""Rows to values. The column lists here and the readers below them are two halves of one thing."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime
from functools import lru_cache
from operator import itemgetter
from typing import Any

from afl.kernel.model import (
    Call,
    CallId,
    CallStatus,
    Claim,
    ClaimRequest,
    Fence,
    Json,
    Outcome,
    Reason,
    ReasonCode,
    Retry,
    RunId,
    State,
    Task,
    TaskId,
    Wake,
    Worker,
    WorkerId,
    WorkerState,
)

_COLUMNS = """
    t.id::text, t.tenant, t.run, t.kind, t.name, t.list, t.lane, t.hold, t.parent_call::text,
    t.depth, t.state, t.outcome, t.priority, t.run_at, t.wake, t.fence, t.worker, t.claim_token,
    t.committed_fence, t.commits, t.max_failures, t.retry_delay, t.retry_backoff,
    t.retry_max_delay, t.retry_jitter, t.crashes, t.max_crashes, t.failures, t.deadline,
    t.stop_requested, t.input::text, t.result::text, t.error::text, t.reason_code,
    t.reason_since, t.reason_until, t.reason_by, t.idem, t.trace, t.seq, t.dead,
    t.redrives::text, t.created_at, t.closed_at, t.caller::text
""".strip()
TASK_WIDTH = 45
#: Where in the row of a task a column is.
COLUMN = {name: at for at, name in enumerate(re.findall(r"t\.(\w+)", _COLUMNS))}
#: What a task has answered to a call is read there.
_HAS_RESULT = "t.outcome in ('success', 'partial')"
_TOLD = "case when t.told and {when} then afl.told_v1(t.parent_call) else t.{column} end::text"
TASK_COLUMNS = _COLUMNS.replace(
    "t.result::text", _TOLD.format(when=_HAS_RESULT, column="result")
).replace("t.error::text", _TOLD.format(when=f"not {_HAS_RESULT}", column="error"))
CALL_COLUMNS = """
    c.id::text, c.run, c.caller::text, c.key, c.callee::text, c.status, c.deadline,
    case when c.card is null then c.reply else afl.kept_v1(c.card, c.reply) end,
    c.replied_at, c.applied
""".strip()

_NO_REASON = (None, None, None, None)
#: What is in the row as it is in the task.
_PLAIN_FIELDS = tuple(
    each.name
    for each in fields(Task)
    if each.name in COLUMN
    and each.name not in ("state", "outcome", "wake", "input", "result", "error")
    and not each.name.endswith("_at")
    and each.name != "deadline"
)
_plain_columns = itemgetter(*(COLUMN[name] for name in _PLAIN_FIELDS))
_decode = json.JSONDecoder().raw_decode
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_STATES = {each.value: each for each in State}
_OUTCOMES: dict[str | None, Outcome | None] = {each.value: each for each in Outcome}
_OUTCOMES[None] = None
_WAKES = {each.value: each for each in Wake}
_REASONS = {each.value: each for each in ReasonCode}
_STATUSES = {each.value: each for each in CallStatus}


def is_id(text: str) -> bool:
    """Whether this can be the id of a task or a call."""
    return _UUID.fullmatch(text) is not None


def task_of(row: Sequence[Any], at: int = 0) -> Task:
    """The task whose columns start there. The order is that of `Task`, spread where it nests."""
    r = row[at : at + TASK_WIDTH]
    task = object.__new__(Task)
    fields_ = task.__dict__
    # what the constructor does, in a fraction of its time
    fields_.update(zip(_PLAIN_FIELDS, _plain_columns(r), strict=True))
    fields_["state"] = _STATES[r[10]]
    fields_["outcome"] = _OUTCOMES[r[11]]
    fields_["run_at"] = _utc(r[13])
    fields_["wake"] = _WAKES[r[14]]
    fields_["retry"] = _retry(*r[20:25])
    fields_["deadline"] = _utc_or_none(r[28])
    fields_["input"] = json_of(r[30])
    fields_["result"] = json_of(r[31])
    fields_["error"] = json_of(r[32])
    fields_["reason"] = None if r[33] is None else _reason(*r[33:37])
    fields_["created_at"] = _utc(r[42])
    fields_["closed_at"] = _utc_or_none(r[43])
    return task


def claimed_row(row: Sequence[Any], request: ClaimRequest) -> tuple[Any, ...]:
    """The answers and then the row of a task, out of the columns of `afl.claimed`: with what is the
    same in all that this request has claimed."""
    nothing = None
    return (
        *row[2:13],
        State.RUNNING.value,
        nothing,
        *row[13:17],
        request.worker,
        request.token,
        *row[17:30],
        nothing,
        row[30],
        *_NO_REASON,
        *row[31:34],
        False,
        *row[34:36],
        nothing,
        row[36],
    )


def json_of(text: str | None) -> Json:
    """What was stored: nothing is null. The text is ours, so nothing stands around the value."""
    return None if text is None else _decode(text)[0]


#: Few different ones are in use.
_retry = lru_cache(maxsize=1024)(Retry)


def _reason(code: str, since: datetime, until: datetime | None, by: str | None) -> Reason:
    return Reason(_REASONS[code], _utc(since), _utc_or_none(until), by)


def call_of(row: Sequence[Any]) -> Call:
    id_, run, caller, key, callee, status, deadline, reply, replied_at, applied = row
    return Call(
        id_,
        run,
        caller,
        key,
        callee,
        _STATUSES[status],
        _utc(deadline),
        reply,
        _utc_or_none(replied_at),
        applied,
    )


def claim_of(task: Task, replies: Sequence[Sequence[Any]] | None) -> Claim:
    """A claim, with the answers as `afl.untaken_v1` packs them."""
    assert task.fence is not None
    return Claim(
        task, task.fence, tuple(_untaken(task, reply) for reply in replies) if replies else ()
    )


def _untaken(task: Task, reply: Sequence[Any]) -> Call:
    id_, key, callee, status, deadline, body, replied_at = reply
    return Call(
        CallId(id_),
        RunId(task.run),
        TaskId(task.id),
        key,
        callee,
        _STATUSES[status],
        _utc(datetime.fromisoformat(deadline)),
        body,
        _utc(datetime.fromisoformat(replied_at)),
        False,
    )


def worker_of(row: Sequence[Any]) -> Worker:
    (id_, name, group, service, lists, handlers, slots, lease, state, started, seen, expires) = row
    return Worker(
        WorkerId(id_),
        name,
        group,
        service,
        tuple(lists),
        tuple(handlers),
        slots,
        lease,
        WorkerState(state),
        _utc(started),
        _utc(seen),
        _utc(expires),
    )


def fences_of(values: Sequence[int]) -> tuple[Fence, ...]:
    return tuple(Fence(value) for value in values)


def _utc(value: datetime) -> datetime:
    return value.astimezone(UTC)


def _utc_or_none(value: datetime | None) -> datetime | None:
    return None if value is None else value.astimezone(UTC)


utc = _utc
