"""A store and the reference, side by side: translates requests to the store's words and what the
store shows to the reference's, so that the two can be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from afl.kernel.errors import Fenced, KernelError, NotFound
from afl.kernel.model import (
    Call,
    CallId,
    CallSpec,
    CallStatus,
    CardSpec,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Committed,
    Continue,
    Fence,
    Json,
    Outcome,
    Retry,
    Suspend,
    Swept,
    Task,
    TaskId,
    TaskSpec,
    Then,
    Wake,
    WorkerId,
    WorkerSpec,
    WorkerState,
)
from afl.kernel.port import Transaction
from afl.testing.conformance.harness import Harness
from afl.testing.conformance.invariants import Watch, take_snapshot
from afl.testing.conformance.reference import (
    KERNEL,
    RCall,
    RClaim,
    RCommit,
    RCommitted,
    Reference,
    RefusedError,
    RRequest,
    RTask,
    Work,
)

#: Times are compared with this grain: a real store's clock runs while a virtual one stands still.
GRAIN_SECONDS = 5
Answer = TypeVar("Answer")


class WritesError(Exception):
    """Raised by a caller's own writes, to see the transaction undone."""


@dataclass(slots=True)
class Side:
    """One store, with the store's names for the reference's numbers."""

    harness: Harness
    tasks: list[TaskId] = field(default_factory=list)
    calls: list[CallId] = field(default_factory=list)
    fences: dict[int, Fence] = field(default_factory=dict)
    start: datetime = field(init=False)
    watch: Watch = field(init=False)

    def __post_init__(self) -> None:
        self.watch = Watch(self.harness.store)
        clock = self.harness.store.register(WorkerSpec(WorkerId("clock"), "clock"))
        self.start = clock.started_at
        self.harness.store.set_worker_state(clock.id, WorkerState.SHUTDOWN)

    # Requests

    def enqueue(self, works: list[Work]) -> list[int]:
        made = self.harness.store.enqueue([_spec(work) for work in works])
        self.tasks += sorted({task.id for task in made} - set(self.tasks))
        return [self.tasks.index(task.id) for task in made]

    def claim(self, request: RRequest) -> list[RClaim]:
        claims = self.harness.store.claim(_request(request))
        self._learn_fences(claims)
        return [self._claim(claim) for claim in claims]

    def commit(
        self, commits: list[RCommit], eager: RRequest | None, *, fail: bool = False
    ) -> list[RCommitted]:
        answers = self.harness.store.commit(
            [self._commit(commit) for commit in commits],
            writes=_fail if fail else None,
            eager=None if eager is None else _request(eager),
        )
        self._learn_fences([claim for answer in answers for claim in answer.eager])
        return [self._committed(answer) for answer in answers]

    def commit_and_claim(
        self, commits: list[RCommit], request: RRequest, *, fail: bool = False
    ) -> tuple[list[RCommitted], list[RClaim]]:
        answers, claims = self.harness.store.commit_and_claim(
            [self._commit(commit) for commit in commits],
            _request(request),
            writes=_fail if fail else None,
        )
        self._learn_fences(claims)
        committed = [self._committed(answer) for answer in answers]
        return committed, [self._claim(claim) for claim in claims]

    def extend(self, fence: int, by: float) -> int | None:
        deadline = self.harness.store.extend(self.fences[fence], timedelta(seconds=by))
        return None if deadline is None else self._seconds(deadline)

    def reply(self, call: int, status: str, body: str | None) -> bool:
        return self.harness.store.reply(self.calls[call], CallStatus(status), body)

    def stop(self, task: int, *, force: bool) -> str:
        return self.harness.store.stop(self.tasks[task], force=force, error="stop").value

    def redrive(self, task: int) -> int:
        fresh = self.harness.store.redrive(self.tasks[task])
        if fresh.id not in self.tasks:
            self.tasks.append(fresh.id)
        return self.tasks.index(fresh.id)

    def register(self, name: str, handlers: tuple[str, ...], lease: float) -> None:
        spec = WorkerSpec(WorkerId(name), name, handlers=handlers, lease=timedelta(seconds=lease))
        self.harness.store.register(spec)

    def shut_down(self, name: str) -> None:
        self.harness.store.set_worker_state(WorkerId(name), WorkerState.SHUTDOWN)

    def renew(self, name: str, held: list[int]) -> tuple[list[int], list[int], list[int]]:
        renewal = self.harness.store.renew(WorkerId(name), [self.fences[fence] for fence in held])
        numbers = {fence: number for number, fence in self.fences.items()}
        lost, stop, stray = (
            [numbers[fence] for fence in fences]
            for fences in (renewal.lost, renewal.stop, renewal.stray)
        )
        return lost, stop, stray

    def sweep(self) -> Counter[str]:
        total: Counter[str] = Counter()
        while (swept := self.harness.store.sweep()).total:
            total += Counter({name: getattr(swept, name) for name in Swept.__dataclass_fields__})
        return total

    # What the store shows

    def problems(self, reference: Reference) -> list[str]:
        """Broken invariants, and every difference from the reference."""
        rows = take_snapshot(self.harness.store)
        problems = self.watch.check_snapshot(rows)
        seen_tasks = [self._task(rows.tasks[task]) for task in self.tasks]
        problems += _differences(
            [_expected_task(reference, t) for t in reference.tasks], seen_tasks
        )
        seen_calls = [self._call(rows.calls[call]) for call in self.calls]
        problems += _differences([_expected_call(call) for call in reference.calls], seen_calls)
        if len(rows.tasks) != len(self.tasks) or len(rows.calls) != len(self.calls):
            problems.append("the store has tasks or calls that the reference has not")
        events = Counter(
            (e.topic, self.tasks.index(e.task), _event_kind(e.body)) for e in rows.outbox
        )
        problems += _differences([Counter(reference.outbox)], [events])
        live = [str(worker.id) for worker in self.harness.store.live_workers()]
        problems += _differences([reference.live_workers()], [live])
        dead = [self.tasks.index(task.id) for task in self.harness.store.dead_letters(1000)]
        return problems + _differences([reference.dead_letters()], [dead])

    def _task(self, task: Task) -> dict[str, object]:
        reason = self.harness.store.why(task.id)
        return {
            "label": self.tasks.index(task.id),
            "state": task.state.value,
            "outcome": task.outcome and task.outcome.value,
            "run_at": self._seconds(task.run_at),
            "deadline": task.deadline and self._seconds(task.deadline),
            "reason": task.reason and task.reason.code.value,
            "why": reason and reason.code.value,
            "lane_held_by": (
                self.tasks.index(TaskId(reason.by or "")) if _is_queued(task) and reason else None
            ),
            "parent": task.parent_call and self.calls.index(task.parent_call),
            "depth": task.depth,
            "root": self.tasks.index(TaskId(task.run)),
            "fence": self._fence(task.fence),
            "worker": task.worker,
            "token": task.claim_token,
            "committed_fence": self._fence(task.committed_fence),
            "commits": task.commits,
            "crashes": task.crashes,
            "failures": task.failures,
            "stop_requested": task.stop_requested,
            "result": _value(task.result),
            "error": _value(task.error),
            "seq": task.seq,
            "dead": task.dead,
            "redrives": task.redrives and self.tasks.index(task.redrives),
        }

    def _call(self, call: Call) -> dict[str, object]:
        assert call.callee is not None
        return {
            "label": self.calls.index(call.id),
            "caller": self.tasks.index(call.caller),
            "key": call.key,
            "callee": self.tasks.index(call.callee),
            "deadline": self._seconds(call.deadline),
            "status": call.status.value,
            "reply": _value(call.reply),
            "applied": call.applied,
        }

    def _seconds(self, time: datetime) -> int:
        return grains((time - self.start).total_seconds())

    def _fence(self, fence: Fence | None) -> int | None:
        known = {real: number for number, real in self.fences.items()}
        return None if fence is None else known[fence]

    # Translation

    def _claim(self, claim: Claim) -> RClaim:
        number = self._fence(claim.fence)
        assert number is not None
        replies = tuple(self.calls.index(reply.id) for reply in claim.replies)
        return RClaim(self.tasks.index(claim.task.id), number, replies)

    def _committed(self, answer: Committed) -> RCommitted:
        self._learn_calls(list(answer.calls.values()))
        calls = {key: self.calls.index(call) for key, call in answer.calls.items()}
        eager = [self._claim(claim) for claim in answer.eager]
        return RCommitted(self.tasks.index(answer.task.id), False, calls, eager=eager)

    def _learn_fences(self, claims: Sequence[Claim]) -> None:
        """In the order in which they were given, which is not always that of the answer."""
        for fence in sorted({claim.fence for claim in claims} - set(self.fences.values())):
            self.fences[len(self.fences) + 1] = fence

    def _learn_calls(self, calls: Sequence[CallId]) -> None:
        for call in calls:
            if call not in self.calls:
                self.calls.append(call)
                row = self.harness.store.get_call(call)
                assert row is not None
                assert row.callee is not None
                self.tasks.append(row.callee)

    def _commit(self, commit: RCommit) -> Commit:
        return Commit(
            self.fences[commit.fence],
            _then(commit),
            number=commit.number,
            cards=tuple(CardSpec("card", n) for n in range(commit.cards)),
            calls=tuple(
                CallSpec(spec.key, _spec(spec.work), timedelta(seconds=spec.timeout))
                for spec in commit.calls
            ),
            applied=tuple(self.calls[label] for label in commit.applied),
        )


def grains(seconds: float) -> int:
    """A time as it is compared."""
    return round(seconds / GRAIN_SECONDS)


def outcome_of(action: Callable[[], Answer]) -> Answer | str:
    """What an action answers, or the word for its refusal."""
    try:
        return action()
    except RefusedError as refused:
        return refused.why
    except Fenced:
        return "fenced"
    except NotFound:
        return "not_found"
    except KernelError:
        return "refused"
    except WritesError:
        return "undone"


def _expected_task(reference: Reference, task: RTask) -> dict[str, object]:
    holder = reference.holder(task.work.lane) if task.state == "queued" else None
    return {
        "label": task.label,
        "state": task.state,
        "outcome": task.outcome,
        "run_at": grains(task.run_at),
        "deadline": task.deadline and grains(task.deadline),
        "reason": task.reason,
        "why": reference.why(task),
        "lane_held_by": None if holder is None else holder.label,
        "parent": task.parent,
        "depth": task.depth,
        "root": task.root,
        "fence": task.fence,
        "worker": task.worker,
        "token": task.token,
        "committed_fence": task.committed_fence,
        "commits": task.commits,
        "crashes": task.crashes,
        "failures": task.failures,
        "stop_requested": task.stop_requested,
        "result": task.result,
        "error": task.error,
        "seq": task.seq,
        "dead": task.dead,
        "redrives": task.redrives,
    }


def _expected_call(call: RCall) -> dict[str, object]:
    return {
        "label": call.label,
        "caller": call.caller,
        "key": call.key,
        "callee": call.callee,
        "deadline": grains(call.deadline),
        "status": call.status,
        "reply": call.reply,
        "applied": call.applied,
    }


def _differences(expected: Sequence[object], seen: Sequence[object]) -> list[str]:
    if len(expected) != len(seen):
        return [f"expected {len(expected)} rows, and there are {len(seen)}"]
    return [
        f"expected {_shown(one, other)}, and there is {_shown(other, one)}"
        for one, other in zip(expected, seen, strict=True)
        if one != other
    ]


def _shown(row: object, other: object) -> object:
    """Only what differs, and which row it is."""
    if not isinstance(row, dict) or not isinstance(other, dict):
        return row
    return {k: v for k, v in row.items() if k == "label" or v != other.get(k)}


def _fail(_transaction: Transaction) -> None:
    raise WritesError


def _is_queued(task: Task) -> bool:
    return task.state.value == "queued"


def _value(value: Json) -> object:
    return KERNEL if isinstance(value, dict) else value


def _event_kind(body: Json) -> object:
    assert isinstance(body, dict)
    return body.get("outcome") or body.get("status")


def _spec(work: Work) -> TaskSpec:
    return TaskSpec(
        "test",
        work.name,
        lane=work.lane,
        hold=work.hold,
        priority=work.priority,
        delay=timedelta(seconds=work.delay),
        timeout=None if work.timeout is None else timedelta(seconds=work.timeout),
        wake=Wake.ANY if work.wake_any else Wake.ALL,
        retry=Retry(work.max_failures, timedelta(seconds=work.retry_delay), 3.0, jitter=False),
        max_crashes=work.max_crashes,
        idem=work.idem,
    )


def _request(request: RRequest) -> ClaimRequest:
    return ClaimRequest(WorkerId(request.worker), (request.name,), n=request.n, token=request.token)


def _then(commit: RCommit) -> Then:
    if commit.then == "suspend":
        return Suspend()
    if commit.then == "continue":
        return Continue()
    return Close(Outcome(commit.then), commit.value, commit.value, commit.permanent)
