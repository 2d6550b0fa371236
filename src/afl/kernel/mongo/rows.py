"""The kernel's rows as documents, and back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from afl.kernel.model import (
    Call,
    CallId,
    CallStatus,
    CardHash,
    Fence,
    Json,
    Lock,
    Loss,
    OutboxEntry,
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
from afl.kernel.mongo.transaction import Document
from afl.kernel.mongo.values import Values, to_micros, to_time

_MICROSECOND = timedelta(microseconds=1)


@dataclass(slots=True)
class Counts:
    """What a document knows of its task's calls beside the task: how many are open, how many
    answers were not taken in, and how many were ever made."""

    open: int = 0
    untaken: int = 0
    made: int = 0


class RowDocuments:
    """Turns rows into documents and back, with the long values where they belong."""

    def __init__(self, values: Values) -> None:
        self._values = values

    def task_in(
        self,
        task: Task,
        caller: TaskId | None,
        counts: Counts,
        last_fence: int,
        stored: Document | None,
    ) -> Document:
        """The document of a task, with what is derived from it for the indexes. `stored` is the
        one that is there: the input stays what it was."""
        return {
            "_id": task.id,
            "tenant": task.tenant,
            "run": task.run,
            "kind": task.kind,
            "name": task.name,
            "list": task.list,
            "lane": task.lane,
            "hold": task.hold,
            "parent_call": task.parent_call,
            "depth": task.depth,
            "state": task.state.value,
            "outcome": None if task.outcome is None else task.outcome.value,
            "priority": task.priority,
            "run_at": to_micros(task.run_at),
            "wake": task.wake.value,
            "fence": task.fence,
            "worker": task.worker,
            "claim_token": task.claim_token,
            "committed_fence": task.committed_fence,
            "commits": task.commits,
            "retry": _retry_in(task.retry),
            "crashes": task.crashes,
            "max_crashes": task.max_crashes,
            "failures": task.failures,
            "deadline": to_micros(task.deadline),
            "stop_requested": task.stop_requested,
            "input": self._values.pack(task.input) if stored is None else stored["input"],
            "result": self._values.pack(task.result),
            "error": self._values.pack(task.error),
            "reason": None if task.reason is None else reason_in(task.reason),
            "idem": task.idem,
            "trace": task.trace,
            "seq": task.seq,
            "dead": task.dead,
            "redrives": task.redrives,
            "created_at": to_micros(task.created_at),
            "closed_at": to_micros(task.closed_at),
            # for the indexes
            "served_as": sorted({task.name, task.short_name}),
            "order": -task.priority,
            "alive": task.state is not State.CLOSED,
            "active": task.lane is not None and task.is_active,
            "caller": caller,
            "last_fence": last_fence,
            "open_calls": counts.open,
            "untaken": counts.untaken,
            "calls_made": counts.made,
        }

    def task_out(self, row: Document) -> Task:
        return Task(
            id=TaskId(row["_id"]),
            tenant=row["tenant"],
            run=RunId(row["run"]),
            kind=row["kind"],
            name=row["name"],
            list=row["list"],
            lane=row["lane"],
            hold=row["hold"],
            parent_call=row["parent_call"],
            depth=row["depth"],
            state=State(row["state"]),
            outcome=None if row["outcome"] is None else Outcome(row["outcome"]),
            priority=row["priority"],
            run_at=to_time(row["run_at"]),
            wake=Wake(row["wake"]),
            fence=row["fence"],
            worker=row["worker"],
            claim_token=row["claim_token"],
            committed_fence=row["committed_fence"],
            commits=row["commits"],
            retry=_retry_out(row["retry"]),
            crashes=row["crashes"],
            max_crashes=row["max_crashes"],
            failures=row["failures"],
            deadline=to_time(row["deadline"]),
            stop_requested=row["stop_requested"],
            input=self._values.unpack(row["input"]),
            result=self._values.unpack(row["result"]),
            error=self._values.unpack(row["error"]),
            reason=None if row["reason"] is None else _reason_out(row["reason"]),
            idem=row["idem"],
            trace=row["trace"],
            seq=row["seq"],
            dead=row["dead"],
            redrives=row["redrives"],
            created_at=to_time(row["created_at"]),
            closed_at=to_time(row["closed_at"]),
        )

    def call_in(self, call: Call) -> Document:
        return {
            "_id": call.id,
            "run": call.run,
            "caller": call.caller,
            "key": call.key,
            "callee": call.callee,
            "status": call.status.value,
            "deadline": to_micros(call.deadline),
            "reply": self._values.pack(call.reply),
            "replied_at": to_micros(call.replied_at),
            "applied": call.applied,
            # for the indexes
            "untaken": call.status is not CallStatus.OPEN and not call.applied,
        }

    def call_out(self, row: Document) -> Call:
        return Call(
            id=CallId(row["_id"]),
            run=RunId(row["run"]),
            caller=TaskId(row["caller"]),
            key=row["key"],
            callee=row["callee"],
            status=CallStatus(row["status"]),
            deadline=to_time(row["deadline"]),
            reply=self._values.unpack(row["reply"]),
            replied_at=to_time(row["replied_at"]),
            applied=row["applied"],
        )

    def entry_in(
        self, topic: str, task: TaskId, run: RunId, body: Json, created_at: datetime
    ) -> Document:
        """An entry of the outbox, which gets its number when it is first read."""
        return {
            "topic": topic,
            "task": task,
            "run": run,
            "body": self._values.pack(body),
            "created_at": to_micros(created_at),
            "numbered": False,
        }

    def entry_out(self, row: Document) -> OutboxEntry:
        return OutboxEntry(
            id=row["number"],
            topic=row["topic"],
            task=TaskId(row["task"]),
            run=RunId(row["run"]),
            body=self._values.unpack(row["body"]),
            created_at=to_time(row["created_at"]),
        )

    def lock_out(self, row: Document) -> Lock:
        return Lock(
            row["_id"], row["token"], to_time(row["expires_at"]), self._values.unpack(row["meta"])
        )


def counts_out(row: Document) -> Counts:
    return Counts(row["open_calls"], row["untaken"], row["calls_made"])


def reason_in(reason: Reason) -> Document:
    return {
        "code": reason.code.value,
        "since": to_micros(reason.since),
        "until": to_micros(reason.until),
        "by": reason.by,
    }


def _reason_out(row: Document) -> Reason:
    return Reason(ReasonCode(row["code"]), to_time(row["since"]), to_time(row["until"]), row["by"])


def worker_in(worker: Worker) -> Document:
    return {
        "_id": worker.id,
        "name": worker.name,
        "group": worker.group,
        "service": worker.service,
        "lists": list(worker.lists),
        "handlers": list(worker.handlers),
        "slots": worker.slots,
        "lease": worker.lease // _MICROSECOND,
        "state": worker.state.value,
        "started_at": to_micros(worker.started_at),
        "seen_at": to_micros(worker.seen_at),
        "expires_at": to_micros(worker.expires_at),
    }


def worker_out(row: Document) -> Worker:
    return Worker(
        id=WorkerId(row["_id"]),
        name=row["name"],
        group=row["group"],
        service=row["service"],
        lists=tuple(row["lists"]),
        handlers=tuple(row["handlers"]),
        slots=row["slots"],
        lease=timedelta(microseconds=row["lease"]),
        state=WorkerState(row["state"]),
        started_at=to_time(row["started_at"]),
        seen_at=to_time(row["seen_at"]),
        expires_at=to_time(row["expires_at"]),
    )


def loss_in(loss: Loss) -> Document:
    return {
        "task": loss.task,
        "worker": loss.worker,
        "fence": loss.fence,
        "at": to_micros(loss.at),
    }


def loss_out(row: Document) -> Loss:
    return Loss(
        TaskId(row["task"]), WorkerId(row["worker"]), Fence(row["fence"]), to_time(row["at"])
    )


def box_in(box: str, start: int, hashes: list[CardHash]) -> list[Document]:
    return [{"box": box, "at": at, "card": card} for at, card in enumerate(hashes, start)]


def held_by(worker: WorkerId | None = None, token: str | None = None) -> Document:
    """Fits the tasks in the hands of all workers, of one, or what a token of it took; in the words
    of the index that has the unfinished ones alone."""
    where: Document = {"alive": True, "state": "running"}
    if worker is not None:
        where["worker"] = worker
    if token is not None:
        where["claim_token"] = token
    return where


def lane_id(tenant: str, lane: str) -> Document:
    """The key of a lane, and of an idem."""
    return {"tenant": tenant, "name": lane}


def _retry_in(retry: Retry) -> Document:
    return {
        "max_failures": retry.max_failures,
        "delay": retry.delay // _MICROSECOND,
        "backoff": float(retry.backoff),
        "max_delay": retry.max_delay // _MICROSECOND,
        "jitter": retry.jitter,
    }


def _retry_out(row: dict[str, Any]) -> Retry:
    return Retry(
        row["max_failures"],
        timedelta(microseconds=row["delay"]),
        row["backoff"],
        timedelta(microseconds=row["max_delay"]),
        row["jitter"],
    )
