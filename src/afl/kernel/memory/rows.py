"""The rows of the memory store, the indexes over them, and the log that takes changes back.

Nothing else is kept: what a worker needs to go on is in these rows. # I12

Every change of a task or a call goes through `_move` or `_move_call`: those derive all indexes from
the row before and the row after. Undoing is the same step backwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from afl.kernel.machine.states import CLOSED, OPEN, QUEUED, READY, RUNNING
from afl.kernel.memory.heap import KeyedHeap
from afl.kernel.memory.transaction import Journal
from afl.kernel.model import (
    Call,
    CallId,
    Card,
    CardHash,
    Fence,
    Json,
    Lock,
    Loss,
    OutboxEntry,
    RunId,
    Task,
    TaskId,
    Worker,
    WorkerId,
)
from afl.kernel.rules import ClaimKey, claim_key

LaneKey = tuple[str, str]


class Lane:
    """Who holds a lane, and who queues for it: by priority, then id."""

    __slots__ = ("holder", "queue")

    def __init__(self) -> None:
        self.holder: TaskId | None = None
        self.queue: KeyedHeap[TaskId, tuple[int, TaskId]] = KeyedHeap()


class Rows:
    """All rows and indexes. `now` is the time of the open transaction."""

    def __init__(self) -> None:
        self.journal = Journal()
        self.now = datetime.min.replace(tzinfo=UTC)
        self.tasks: dict[TaskId, Task] = {}
        self.calls: dict[CallId, Call] = {}
        self.workers: dict[WorkerId, Worker] = {}
        self.cards: dict[CardHash, Card] = {}
        self.boxes: dict[str, list[CardHash]] = {}
        self.outbox: list[OutboxEntry] = []
        self.locks: dict[str, Lock] = {}
        self.losses: dict[TaskId, tuple[Loss, ...]] = {}
        # The lookups of `machine.Rows` are those of the maps: nothing is quicker
        self.task: Callable[[TaskId], Task] = self.tasks.__getitem__
        self.find_task: Callable[[TaskId], Task | None] = self.tasks.get
        self.call: Callable[[CallId], Call] = self.calls.__getitem__
        self.find_call: Callable[[CallId], Call | None] = self.calls.get
        self.find_worker: Callable[[WorkerId], Worker | None] = self.workers.get
        self._last_fence = 0
        self._last_entry = 0
        # Claims
        self.ready: dict[tuple[str, str], KeyedHeap[TaskId, ClaimKey]] = {}
        self.full_names: dict[tuple[str, str], set[str]] = defaultdict(set)
        self.delayed: KeyedHeap[TaskId, datetime] = KeyedHeap()
        self.by_fence: dict[Fence, TaskId] = {}
        self.by_committed_fence: dict[Fence, TaskId] = {}
        self.held: dict[WorkerId, set[TaskId]] = defaultdict(set)
        self.by_token: dict[tuple[WorkerId, str], set[TaskId]] = defaultdict(set)
        self.lanes: dict[LaneKey, Lane] = {}
        # Calls
        self.calls_of: dict[TaskId, dict[str, CallId]] = {}
        self.open_calls: dict[TaskId, KeyedHeap[CallId, tuple[datetime, CallId]]] = {}
        self.untaken: dict[TaskId, set[CallId]] = {}
        # What time moves; `orphans` may name tasks that are none any more
        self.deadlines: KeyedHeap[TaskId, tuple[datetime, TaskId]] = KeyedHeap()
        self.call_deadlines: KeyedHeap[CallId, tuple[datetime, CallId]] = KeyedHeap()
        self.orphans: set[TaskId] = set()
        # Lookups
        self.idems: dict[tuple[str, str], TaskId] = {}
        self.runs: dict[RunId, set[TaskId]] = defaultdict(set)
        self.unfinished: dict[RunId, int] = defaultdict(int)
        self.dead: set[TaskId] = set()
        self.redriven: dict[TaskId, TaskId] = {}

    # Reading

    def calls_under(self, caller: TaskId, keys: Sequence[str]) -> dict[str, CallId]:
        calls = self.calls_of.get(caller)
        return {} if calls is None else {key: calls[key] for key in keys if key in calls}

    def held_by_fence(self, fence: Fence) -> Task | None:
        task = self.by_fence.get(fence)
        return None if task is None else self.tasks[task]

    def committed_by_fence(self, fence: Fence) -> Task | None:
        task = self.by_committed_fence.get(fence)
        return None if task is None else self.tasks[task]

    def taken(self, worker: WorkerId, token: str) -> list[Task]:
        return [self.tasks[task] for task in self.by_token.get((worker, token), ())]

    def is_wanted(self, tenant: str, lane: str) -> bool:
        return (tenant, lane) in self.lanes

    def holder(self, tenant: str, lane: str) -> TaskId | None:
        found = self.lanes.get((tenant, lane))
        return None if found is None else found.holder

    def first_queued(self, tenant: str, lane: str) -> Task | None:
        found = self.lanes.get((tenant, lane))
        first = None if found is None else found.queue.first()
        return None if first is None else self.tasks[first[1]]

    def untaken_count(self, task: TaskId) -> int:
        return len(self.untaken.get(task, ()))

    def open_count(self, task: TaskId) -> int:
        calls = self.open_calls.get(task)
        return len(calls) if calls is not None else 0

    def first_open(self, task: TaskId) -> Call | None:
        """The open call of a task with the first deadline."""
        calls = self.open_calls.get(task)
        first = calls.first() if calls is not None else None
        return None if first is None else self.calls[first[1]]

    def replies_of(self, task: TaskId) -> list[Call]:
        """Answers that the task has not taken, oldest first."""
        untaken = self.untaken.get(task)
        if untaken is None:
            return []
        return sorted(
            (self.calls[call] for call in untaken), key=lambda call: (call.replied_at, call.id)
        )

    def caller_of(self, task: Task) -> Task | None:
        return None if task.parent_call is None else self.tasks[self.calls[task.parent_call].caller]

    # Writing

    def next_fence(self) -> Fence:
        """A fence greater than all before, used or not. # I9"""
        self._last_fence += 1
        return Fence(self._last_fence)

    def put_task(self, task: Task) -> Task:
        old, state = self.tasks.get(task.id), task.state
        assert old is None or old.state is not CLOSED  # I10
        assert (state is RUNNING) == (task.fence is not None)  # I3
        assert (state is CLOSED) == (task.outcome is not None)  # I4
        self.journal.record(self._move, task, old)
        self._move(old, task)
        return task

    def drop_task(self, task: Task) -> None:
        self.journal.record(self._move, None, task)
        self._move(task, None)

    def put_call(self, call: Call) -> Call:
        old = self.calls.get(call.id)
        self.journal.record(self._move_call, call, old)
        self._move_call(old, call)
        return call

    def drop_call(self, call: Call) -> None:
        self.journal.record(self._move_call, None, call)
        self._move_call(call, None)

    def put_card(self, card: Card) -> None:
        if card.hash not in self.cards:
            self.cards[card.hash] = card
            self.journal.record(self.cards.pop, card.hash)

    def extend_box(self, box: str, hashes: list[CardHash]) -> None:
        """Appends; a box has no gaps because nothing can be put anywhere else. # I8"""
        cards = self.boxes.setdefault(box, [])
        self.journal.record(cards.__delitem__, slice(len(cards), None))
        cards.extend(hashes)

    def drop_box(self, box: str) -> None:
        if (cards := self.boxes.pop(box, None)) is not None:
            self.journal.record(self.boxes.__setitem__, box, cards)

    def add_loss(self, loss: Loss) -> None:
        before = self.losses.get(loss.task)
        self.journal.record(_put, self.losses, loss.task, before)
        self.losses[loss.task] = (*(before or ()), loss)

    def drop_losses(self, task: TaskId) -> None:
        if (losses := self.losses.pop(task, None)) is not None:
            self.journal.record(self.losses.__setitem__, task, losses)

    def append_outbox(self, topic: str, task: TaskId, run: RunId, body: Json) -> None:
        self._last_entry += 1
        self.outbox.append(OutboxEntry(self._last_entry, topic, task, run, body, self.now))
        self.journal.record(self.outbox.pop)

    def put_worker(self, worker: Worker) -> None:
        self.journal.record(_put, self.workers, worker.id, self.workers.get(worker.id))
        self.workers[worker.id] = worker

    def put_lock(self, key: str, lock: Lock | None) -> None:
        self.journal.record(_put, self.locks, key, self.locks.get(key))
        _put(self.locks, key, lock)

    # Indexes

    def _move(self, old: Task | None, new: Task | None) -> None:
        if old is not None:
            self._leave(old)
        if new is not None:
            self.tasks[new.id] = new
            if old is None:
                self._appear(new)
            self._enter(new)
        elif old is not None:
            del self.tasks[old.id]
            self._vanish(old)
        was = old if old is not None and old.state is not CLOSED else None
        now = new if new is not None and new.state is not CLOSED else None
        if was is None and now is not None:
            self._begin(now)
        elif was is not None and now is None:
            self._end(new or was)
        elif was is not None and now is not None and was.deadline is not now.deadline:
            self.deadlines.discard(now.id)
            self._watch_deadline(now)
        before = None if old is None else old.committed_fence
        after = None if new is None else new.committed_fence
        if before != after:
            self._move_committed_fence(before, after, new)

    def _enter(self, task: Task) -> None:
        """Into the indexes of the task's state."""
        state = task.state
        if state is READY:
            self._offer(task)
        elif state is RUNNING:
            assert task.fence is not None
            assert task.worker is not None
            assert task.fence not in self.by_fence  # I1
            self.by_fence[task.fence] = task.id
            self.held[task.worker].add(task.id)
            if task.claim_token is not None:
                self.by_token[task.worker, task.claim_token].add(task.id)
        if task.lane is not None:
            self._enter_lane((task.tenant, task.lane), task)

    def _leave(self, task: Task) -> None:
        """Out of the indexes of the task's state."""
        state = task.state
        if state is READY:
            self.ready[task.list, task.name].discard(task.id)
            self.delayed.discard(task.id)
        elif state is RUNNING:
            assert task.fence is not None
            assert task.worker is not None
            del self.by_fence[task.fence]
            _take_out(self.held, task.worker, task.id)
            if task.claim_token is not None:
                _take_out(self.by_token, (task.worker, task.claim_token), task.id)
        if task.lane is not None:
            self._leave_lane((task.tenant, task.lane), task)

    def _move_committed_fence(
        self, before: Fence | None, after: Fence | None, task: Task | None
    ) -> None:
        if before is not None:
            del self.by_committed_fence[before]
        if task is not None and after is not None:
            self.by_committed_fence[after] = task.id

    def _offer(self, task: Task) -> None:
        if task.run_at > self.now:
            self.delayed.add(task.id, task.run_at)
        else:
            self.ready[task.list, task.name].add(
                task.id, claim_key(task.priority, task.run_at, task.id)
            )

    def offer_due(self) -> None:
        """Makes claimable what was to wait until now."""
        while (first := self.delayed.first()) is not None and first[0] <= self.now:
            self.delayed.discard(first[1])
            self._offer(self.tasks[first[1]])

    def _enter_lane(self, key: LaneKey, task: Task) -> None:
        if task.is_active:
            lane = self.lanes.setdefault(key, Lane())
            assert lane.holder is None  # I2
            lane.holder = task.id
        elif task.state is QUEUED:
            lane = self.lanes.setdefault(key, Lane())
            lane.queue.add(task.id, (-task.priority, task.id))

    def _leave_lane(self, key: LaneKey, task: Task) -> None:
        if task.is_active:
            lane = self.lanes[key]
            lane.holder = None
        elif task.state is QUEUED:
            lane = self.lanes[key]
            lane.queue.discard(task.id)
        else:
            return
        if lane.holder is None and not lane.queue:
            del self.lanes[key]

    def _appear(self, task: Task) -> None:
        if (task.list, task.name) not in self.ready:
            self.ready[task.list, task.name] = KeyedHeap()
            self.full_names[task.list, task.short_name].add(task.name)
        self.runs[task.run].add(task.id)
        if task.idem is not None:
            self.idems[task.tenant, task.idem] = task.id
        if task.redrives is not None:
            self.redriven[task.redrives] = task.id
        if task.dead:
            self.dead.add(task.id)

    def _vanish(self, task: Task) -> None:
        _take_out(self.runs, task.run, task.id)
        self.dead.discard(task.id)
        if task.idem is not None:
            del self.idems[task.tenant, task.idem]
        if task.redrives is not None:
            del self.redriven[task.redrives]

    def _begin(self, task: Task) -> None:
        self.unfinished[task.run] += 1
        self.dead.discard(task.id)
        self._watch_deadline(task)

    def _watch_deadline(self, task: Task) -> None:
        if task.deadline is not None:
            self.deadlines.add(task.id, (task.deadline, task.id))

    def _end(self, task: Task) -> None:
        self.unfinished[task.run] -= 1
        if not self.unfinished[task.run]:
            del self.unfinished[task.run]
        self.deadlines.discard(task.id)
        if task.dead:
            self.dead.add(task.id)
        for call in self.calls_of.get(task.id, {}).values():
            callee = self.calls[call].callee
            if callee is not None and self.tasks[callee].state is not CLOSED:
                self.orphans.add(callee)

    def _move_call(self, old: Call | None, new: Call | None) -> None:
        if old is not None:
            self._leave_call(old)
        if new is not None:
            self.calls[new.id] = new
            self.calls_of.setdefault(new.caller, {})[new.key] = new.id
            self._enter_call(new)
        elif old is not None:
            del self.calls[old.id]
            del self.calls_of[old.caller][old.key]
            if not self.calls_of[old.caller]:
                del self.calls_of[old.caller]

    def _enter_call(self, call: Call) -> None:
        if call.status is OPEN:
            key = (call.deadline, call.id)
            calls = self.open_calls.get(call.caller)
            if calls is None:
                calls = self.open_calls[call.caller] = KeyedHeap()
            calls.add(call.id, key)
            self.call_deadlines.add(call.id, key)
        elif not call.applied:
            self.untaken.setdefault(call.caller, set()).add(call.id)

    def _leave_call(self, call: Call) -> None:
        if call.status is OPEN:
            calls = self.open_calls[call.caller]
            calls.discard(call.id)
            if not calls:
                del self.open_calls[call.caller]
            self.call_deadlines.discard(call.id)
        elif not call.applied:
            _take_out(self.untaken, call.caller, call.id)


def _take_out(index: dict[Any, set[Any]], key: object, item: object) -> None:
    """Removes an item from an index of sets, and the set with its last item."""
    items = index[key]
    items.discard(item)
    if not items:
        del index[key]


def _put(rows: dict[Any, Any], key: object, row: object) -> None:
    """Sets a row, or removes it if it is None."""
    if row is None:
        rows.pop(key, None)
    else:
        rows[key] = row
