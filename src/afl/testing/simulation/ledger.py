"""What the judge knows without asking the accused: who was given what, and when.

The ledger is filled from what went into the store and what came out of it, at the true time. It
says what is allowed next.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from afl.kernel.model import CallId, CallSpec, ClaimRequest, Fence, Task, TaskId, TaskSpec, WorkerId


class Violation(Exception):
    """A promise was broken. `rule` names it in a few words."""

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f"{rule}: {what}")
        self.rule = rule


@dataclass(slots=True)
class Lease:
    """Until when a worker is safe, and when it last was not."""

    length: timedelta
    expires: datetime
    lapsed: datetime | None = None

    def renew(self, now: datetime) -> None:
        if now >= self.expires:
            self.lapsed = now
        self.expires = now + self.length

    def lapsed_since(self, moment: datetime, now: datetime) -> bool:
        return now >= self.expires or (self.lapsed is not None and self.lapsed >= moment)


@dataclass(slots=True)
class TaskEntry:
    """A task as the judge sees it."""

    id: TaskId
    spec: TaskSpec
    deadline: datetime | None
    caller: TaskId | None = None
    call: CallId | None = None
    #: the fence that was given last, while nobody has handed it back
    fence: Fence | None = None
    worker: WorkerId | None = None
    claimed: datetime | None = None
    token: str | None = None
    claims_since_commit: int = 0
    cards: int = 0
    stop_asked: bool = False
    closed: Task | None = None

    @property
    def path(self) -> str:
        return str(self.spec.input)


@dataclass(slots=True)
class CallEntry:
    id: CallId
    callee: TaskId
    key: str
    deadline: datetime


@dataclass(slots=True)
class Ledger:
    tasks: dict[TaskId, TaskEntry] = field(default_factory=dict)
    calls: dict[CallId, CallEntry] = field(default_factory=dict)
    calls_of: dict[TaskId, dict[str, CallId]] = field(default_factory=lambda: defaultdict(dict))
    fences: dict[Fence, TaskId] = field(default_factory=dict)
    committed: set[tuple[Fence, int]] = field(default_factory=set)
    idems: dict[str, TaskId] = field(default_factory=dict)
    leases: dict[WorkerId, Lease] = field(default_factory=dict)
    lanes: dict[str, TaskId] = field(default_factory=dict)
    effects: dict[str, set[TaskId]] = field(default_factory=lambda: defaultdict(set))
    #: the dead letters that were driven again, by the tasks that repeat them
    redriven: dict[TaskId, TaskId] = field(default_factory=dict)
    open: set[TaskId] = field(default_factory=set)
    last_fence: int = 0

    def add_root(self, task: TaskId, spec: TaskSpec, now: datetime) -> None:
        deadline = None if spec.timeout is None else now + spec.timeout
        self.tasks[task] = TaskEntry(task, spec, deadline)
        self.open.add(task)

    def add_call(
        self, call: CallId, callee: TaskId, spec: CallSpec, caller: TaskEntry, now: datetime
    ) -> None:
        deadline = now + spec.timeout
        if caller.deadline is not None:
            deadline = min(deadline, caller.deadline)
        self.calls[call] = CallEntry(call, callee, spec.key, deadline)
        self.calls_of[caller.id][spec.key] = call
        timeout = spec.task.timeout
        own = deadline if timeout is None else min(deadline, now + timeout)
        self.tasks[callee] = TaskEntry(callee, spec.task, own, caller.id, call)
        self.open.add(callee)

    def first_of(self, task: TaskId) -> TaskId:
        """The task that this one repeats, from the first on: the same work."""
        while task in self.redriven:
            task = self.redriven[task]
        return task

    def register(self, worker: WorkerId, length: timedelta, now: datetime) -> None:
        """A new worker, or one that was there before: what it had lost stays lost."""
        if worker in self.leases:
            self.leases[worker].renew(now)
        else:
            self.leases[worker] = Lease(length, now + length)

    def extend(self, task: TaskEntry, until: datetime, now: datetime) -> None:
        """Moves the deadlines of a task and its call, unless they may have been acted on."""
        call = None if task.call is None else self.calls[task.call]
        if call is not None and now < call.deadline < until:
            call.deadline = until
        if task.deadline is not None and now < task.deadline < until:
            task.deadline = until

    def held_by(self, worker: WorkerId) -> dict[Fence, TaskEntry]:
        """What a worker was given and has not handed back."""
        entries = (self.tasks[task] for task in self.open)
        return {e.fence: e for e in entries if e.worker == worker and e.fence is not None}

    def is_lost(self, task: TaskEntry, now: datetime) -> bool:
        """Whether the worker that holds a task has, or has had, no right to it any more."""
        if task.worker is None or task.claimed is None:
            return False
        return self.leases[task.worker].lapsed_since(task.claimed, now)

    def may_cancel(self, task: TaskEntry, now: datetime) -> bool:
        """Whether there is a reason to cancel: somebody asked, or nobody waits for it any more."""
        if task.stop_asked:
            return True
        if task.caller is None or task.call is None:
            return False
        return self.tasks[task.caller].closed is not None or now >= self.calls[task.call].deadline

    def take(self, task: TaskEntry, fence: Fence, request: ClaimRequest, now: datetime) -> None:
        self.fences[fence] = task.id
        self.last_fence = max(self.last_fence, fence)
        task.fence, task.worker, task.claimed = fence, request.worker, now
        task.token = request.token
        task.claims_since_commit += 1
        if task.spec.lane is not None:
            self.lanes[task.spec.lane] = task.id

    def hand_back(self, task: TaskEntry) -> None:
        task.fence = task.worker = task.claimed = None

    def leave_lane(self, task: TaskEntry) -> None:
        lane = task.spec.lane
        if lane is not None and self.lanes.get(lane) == task.id:
            del self.lanes[lane]
