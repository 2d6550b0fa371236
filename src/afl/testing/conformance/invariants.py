"""The invariants I1 to I12 of the kernel, checked from what the port shows.

`check` looks at one moment. A `Watch` looks again and again and also sees what must not change from
one look to the next: fences that increase, closed tasks that stay as they are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from afl.kernel.model import (
    MAX_DEPTH,
    Call,
    CallId,
    CallStatus,
    OutboxEntry,
    ReasonCode,
    State,
    Task,
    TaskId,
    Wake,
)
from afl.kernel.port import Store

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All rows of a store at one moment, as far as the port shows them."""

    tasks: Mapping[TaskId, Task]
    calls: Mapping[CallId, Call]
    outbox: tuple[OutboxEntry, ...]
    box_lengths: Mapping[TaskId, int]

    def caller_of(self, task: Task) -> Task | None:
        call = None if task.parent_call is None else self.calls.get(task.parent_call)
        return None if call is None else self.tasks.get(call.caller)

    def callers_of(self, task: Task) -> Iterator[Task]:
        """The callers of a task, up to the root."""
        caller = self.caller_of(task)
        while caller is not None:
            yield caller
            caller = self.caller_of(caller)


def take_snapshot(store: Store) -> Snapshot:
    tasks: dict[TaskId, Task] = {}
    last: TaskId | None = None
    while page := store.find_tasks(after=last, limit=_PAGE):
        tasks.update((task.id, task) for task in page)
        last = page[-1].id
    entries: list[OutboxEntry] = []
    while more := store.read_outbox(entries[-1].id if entries else 0, _PAGE):
        entries += more
    return Snapshot(
        tasks=tasks,
        calls={call.id: call for task in tasks for call in store.calls_of(task)},
        outbox=tuple(entries),
        box_lengths={task.id: len(store.read_box(task.id)) for task in tasks.values() if task.seq},
    )


def check(store: Store, *, trimmed: bool = False) -> list[str]:
    """The invariants that do not hold, each as `I4: what is wrong`. Empty when all is well.

    `trimmed` says that outbox entries were removed, so that closed events may be missing.
    """
    return check_snapshot(take_snapshot(store), trimmed=trimmed)


def check_snapshot(rows: Snapshot, *, trimmed: bool = False) -> list[str]:
    callees: dict[CallId | None, list[TaskId]] = defaultdict(list)
    calls_of: dict[TaskId, list[Call]] = defaultdict(list)
    for task in rows.tasks.values():
        callees[task.parent_call].append(task.id)
    wrong = [*_holders(rows), *_lanes(rows), *_events(rows, trimmed=trimmed)]
    for call in rows.calls.values():
        calls_of[call.caller].append(call)
        wrong += _call(rows, call, callees[call.id])
    for task in rows.tasks.values():
        wrong += [*_states(task), *_nesting(rows, task), *_reason(task)]
        if task.state is State.WAITING:
            wrong += _waiting(task, calls_of[task.id])
        if rows.box_lengths.get(task.id, 0) != task.seq:
            wrong.append(f"I8: task {task.id} has seq {task.seq} and another number of cards")
    return wrong


@dataclass(slots=True)
class Watch:
    """Checks one store again and again."""

    store: Store
    fences: dict[TaskId, int] = field(default_factory=dict)
    closed: dict[TaskId, Task] = field(default_factory=dict)

    def check(self) -> list[str]:
        return self.check_snapshot(take_snapshot(self.store))

    def check_snapshot(self, rows: Snapshot) -> list[str]:
        wrong = check_snapshot(rows)
        for task in rows.tasks.values():
            before = self.fences.get(task.id, 0)
            if task.fence is not None and task.fence < before:
                wrong.append(f"I9: the fence of task {task.id} went back to {task.fence}")
            self.fences[task.id] = max(before, task.fence or 0)
            if self.closed.get(task.id, task) != task:
                wrong.append(f"I10: task {task.id} was written after it was closed")
            if task.state is State.CLOSED:
                self.closed[task.id] = task
        return wrong


def _holders(rows: Snapshot) -> Iterator[str]:
    fences = Counter(task.fence for task in rows.tasks.values() if task.fence is not None)
    for fence, count in fences.items():
        if count > 1:
            yield f"I1: {count} tasks have the fence {fence}"


def _lanes(rows: Snapshot) -> Iterator[str]:
    active: dict[tuple[str, str], list[Task]] = defaultdict(list)
    for task in rows.tasks.values():
        if task.lane is not None and task.is_active:
            active[task.tenant, task.lane].append(task)
    for (_, lane), holders in active.items():
        if len(holders) > 1:
            yield f"I2: lane {lane} has {len(holders)} active tasks"
    for task in rows.tasks.values():
        if task.state is State.QUEUED and (
            task.lane is None or (task.tenant, task.lane) not in active
        ):
            yield f"I7: task {task.id} queues for lane {task.lane}, which nobody holds"


def _events(rows: Snapshot, *, trimmed: bool) -> Iterator[str]:
    events = Counter(entry.task for entry in rows.outbox if entry.topic == "closed")
    for task in rows.tasks.values():
        expected = int(task.state is State.CLOSED)
        count = events[task.id]
        if count > expected or (count < expected and not trimmed):
            yield f"I4: task {task.id} is {task.state.value} and has {count} closed events"


def _states(task: Task) -> Iterator[str]:
    running = task.state is State.RUNNING
    if running != (task.fence is not None) or running != (task.worker is not None):
        yield f"I3: task {task.id} is {task.state.value}: fence {task.fence}, worker {task.worker}"
    closed = task.state is State.CLOSED
    if closed != (task.outcome is not None) or closed != (task.closed_at is not None):
        yield f"I4: task {task.id} is {task.state.value} with outcome {task.outcome}"
    if task.dead and not closed:
        yield f"I4: task {task.id} is {task.state.value} and a dead letter"


def _call(rows: Snapshot, call: Call, callees: list[TaskId]) -> Iterator[str]:
    is_open = call.status is CallStatus.OPEN
    if is_open != (call.replied_at is None) or (is_open and (call.applied or call.reply)):
        yield f"I5: call {call.id} is {call.status.value}, replied at {call.replied_at}"
    if callees != [call.callee]:
        yield f"I5: call {call.id} has the callee {call.callee}, but is served by {callees}"
    caller = rows.tasks.get(call.caller)
    if caller is None or caller.run != call.run:
        yield f"I12: the caller of call {call.id} is not in its run"
    elif caller.deadline is not None and call.deadline > caller.deadline:
        yield f"I11: call {call.id} may take longer than its caller"


def _waiting(task: Task, calls: list[Call]) -> Iterator[str]:
    if all(call.status is not CallStatus.OPEN for call in calls):
        yield f"I6: task {task.id} waits for no open call"
    untaken = [c for c in calls if c.status is not CallStatus.OPEN and not c.applied]
    if task.wake is Wake.ANY and untaken:
        yield f"I6: task {task.id} waits although it was answered"


def _nesting(rows: Snapshot, task: Task) -> Iterator[str]:
    if task.depth >= MAX_DEPTH:
        yield f"I11: task {task.id} is {task.depth} calls deep"
    if task.parent_call is None:
        return
    call, caller = rows.calls.get(task.parent_call), rows.caller_of(task)
    if call is None or caller is None:
        yield f"I12: the call or the caller of task {task.id} is gone"
        return
    if task.depth != caller.depth + 1:
        yield f"I11: task {task.id} has depth {task.depth} below {caller.depth}"
    if task.deadline is None or task.deadline > call.deadline:
        yield f"I11: task {task.id} may take longer than its call"
    for ancestor in rows.callers_of(task):
        if (
            task.lane is not None
            and (task.tenant, task.lane) == (ancestor.tenant, ancestor.lane)
            and ancestor.hold
            and State.CLOSED not in (task.state, ancestor.state)
        ):
            yield f"I11: task {task.id} wants the lane that its caller {ancestor.id} keeps"


def _reason(task: Task) -> Iterator[str]:
    if task.state is State.CLOSED:
        right = task.reason is None
    elif task.state is State.RUNNING:
        stopping = task.reason is not None and task.reason.code is ReasonCode.STOPPING
        right = stopping if task.stop_requested else task.reason is None
    else:
        right = task.reason is not None
    if not right:
        yield f"reason: task {task.id} is {task.state.value} because of {task.reason}"
