"""The rows that one transaction works with: read when they are needed, written when it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from pymongo import InsertOne, ReplaceOne, UpdateOne

from afl.base.ids import IdSource
from afl.kernel.model import (
    Call,
    CallId,
    CallStatus,
    Card,
    CardHash,
    ClaimRequest,
    Fence,
    Json,
    Loss,
    RunId,
    State,
    Task,
    TaskId,
    Worker,
    WorkerId,
)
from afl.kernel.mongo.lanes import Lanes
from afl.kernel.mongo.rows import (
    Counts,
    RowDocuments,
    box_in,
    counts_out,
    held_by,
    lane_id,
    loss_in,
    worker_in,
    worker_out,
)
from afl.kernel.mongo.transaction import Document, MongoTransaction
from afl.kernel.mongo.values import Values

_Row = TypeVar("_Row")
#: Whoever runs does so under the last fence that it was given.
_HELD = {"state": "running"}
_FIRST_IN_QUEUE = [("order", 1), ("_id", 1)]
_FIRST_DEADLINE = [("deadline", 1), ("_id", 1)]


@dataclass(slots=True)
class _Held:
    """A task as it was read, or nothing if it is new, and as it is now."""

    task: Task
    counts: Counts
    caller: TaskId | None
    last_fence: int
    stored: Document | None


class WorkingSet:
    """`machine.Rows` for one transaction. See there for what each method promises."""

    def __init__(
        self,
        transaction: MongoTransaction,
        values: Values,
        take_fences: Callable[[int], int],
        ids: IdSource,
        fence_block: int = 1,
    ) -> None:
        """Begins with nothing.

        Args:
            take_fences: gives the first of so many fences.
            fence_block: how many fences are asked for at once.
        """
        self.transaction = transaction
        self._values = values
        self._documents = RowDocuments(values)
        self._take_fences = take_fences
        self._fence_block = max(fence_block, 1)
        self._fences: list[int] = []
        self._ids = ids
        self._fresh: set[str] = set()
        self._tasks: dict[TaskId, _Held | None] = {}
        self._by_fence: dict[Fence, _Held] = {}
        #: whose tasks are all here
        self._tokens: set[tuple[WorkerId, str]] = set()
        self._calls: dict[CallId, Call | None] = {}
        self._stored_calls: dict[CallId, Document] = {}
        self._lanes = Lanes(transaction)
        self._workers: dict[WorkerId, Worker | None] = {}
        self._cards: set[CardHash] = set()
        self._changed_tasks: dict[TaskId, None] = {}
        self._changed_calls: dict[CallId, None] = {}
        self._ended: list[TaskId] = []

    @property
    def now(self) -> datetime:
        return self.transaction.now

    def new_id(self) -> str:
        """A fresh id: nobody needs to ask the database for what has it."""
        made = self._ids.new_id()
        self._fresh.add(made)
        return made

    # Tasks

    def task(self, task: TaskId) -> Task:
        return self._held(task).task

    def find_task(self, task: TaskId) -> Task | None:
        if task in self._fresh and task not in self._tasks:
            return None
        if task not in self._tasks:
            self.load_tasks([task])
        held = self._tasks[task]
        return None if held is None else held.task

    def load_tasks(self, tasks: Iterable[TaskId]) -> None:
        """Reads many tasks at once."""
        wanted = [task for task in dict.fromkeys(tasks) if task not in self._tasks]
        if wanted:
            self._read_tasks({"_id": {"$in": wanted}})
            for task in wanted:
                self._tasks.setdefault(task, None)

    def load_fences(self, fences: Sequence[Fence], request: ClaimRequest | None = None) -> None:
        """Reads what many fences hold, and the callers and calls that this will answer; with them,
        what the token of a request has taken."""
        where: Document = {**_HELD, "last_fence": {"$in": list(fences), "$gt": 0}}
        if request is not None and request.token is not None:
            where = {"$or": [where, held_by(request.worker, request.token)]}
            self._tokens.add((request.worker, request.token))
        held = set(fences)
        found = [task for task in self._read_tasks(where) if task.fence in held]
        calls = [task.parent_call for task in found if task.parent_call is not None]
        callers = [self._held(task.id).caller for task in found]
        self.load_tasks(caller for caller in callers if caller is not None)
        self.load_calls(calls)

    def held_by_fence(self, fence: Fence) -> Task | None:
        held = self._by_fence.get(fence)
        if held is not None:
            return held.task if held.task.fence == fence else None
        return _first(self._read_tasks({**_HELD, "last_fence": fence}))

    def committed_by_fence(self, fence: Fence) -> Task | None:
        # it may have been given another since
        found = self._read_tasks({"$or": [{"last_fence": fence}, {"former_fence": fence}]})
        return _first([task for task in found if task.committed_fence == fence])

    def taken(self, worker: WorkerId, token: str) -> list[Task]:
        if (worker, token) not in self._tokens:
            self._send_tasks()
            self._read_tasks(held_by(worker, token))
            self._tokens.add((worker, token))
        tasks = [held.task for held in self._tasks.values() if held is not None]
        return [task for task in tasks if (task.worker, task.claim_token) == (worker, token)]

    def redriven(self, dead: TaskId) -> Task | None:
        """The task that repeats this dead one."""
        stored = self._held(dead).stored
        heir = None if stored is None else stored.get("redriven")
        return None if heir is None else self.task(heir)

    def caller_of(self, task: Task) -> Task | None:
        caller = self._held(task.id).caller
        return None if caller is None else self.task(caller)

    def next_fence(self) -> Fence:
        if not self._fences:
            first = self._take_fences(self._fence_block)
            self._fences = list(range(first + self._fence_block - 1, first - 1, -1))
        return Fence(self._fences.pop())

    def put_task(self, task: Task) -> Task:
        old = self._tasks.get(task.id)
        assert old is None or old.task.state is not State.CLOSED  # I10
        assert (task.state is State.RUNNING) == (task.fence is not None)  # I3
        assert (task.state is State.CLOSED) == (task.outcome is not None)  # I4
        if old is None:
            caller = None if task.parent_call is None else self.call(task.parent_call).caller
            held = self._tasks[task.id] = _Held(task, Counts(), caller, task.fence or 0, None)
        else:
            held = old
        self._lanes.move(None if old is None else old.task, task)
        if task.state is State.CLOSED and held.counts.made:
            self._ended.append(task.id)
        held.task = task
        held.last_fence = max(held.last_fence, task.fence or 0)
        self._changed_tasks[task.id] = None
        return task

    def _held(self, task: TaskId) -> _Held:
        if task not in self._tasks:
            self.load_tasks([task])
        held = self._tasks[task]
        assert held is not None
        return held

    def _read_tasks(
        self, where: Document, sort: list[tuple[str, int]] | None = None, limit: int = 0
    ) -> list[Task]:
        """Tasks that fit, as this transaction has them."""
        found: list[Task] = []
        for row in self.transaction.find("task", where, sort=sort, limit=limit):
            held = self._tasks.get(row["_id"])
            if held is None:
                task = self._documents.task_out(row)
                held = _Held(task, counts_out(row), row["caller"], row["last_fence"], row)
                self._tasks[task.id] = held
                if task.fence is not None:
                    self._by_fence[task.fence] = held
            found.append(held.task)
        return found

    # Calls

    def call(self, call: CallId) -> Call:
        found = self.find_call(call)
        assert found is not None
        return found

    def find_call(self, call: CallId) -> Call | None:
        if call not in self._calls:
            self.load_calls([call])
        return self._calls[call]

    def load_calls(self, calls: Iterable[CallId]) -> None:
        """Reads many calls at once."""
        wanted = [call for call in dict.fromkeys(calls) if call not in self._calls]
        if wanted:
            self._read_calls({"_id": {"$in": wanted}})
            for call in wanted:
                self._calls.setdefault(call, None)

    def calls_under(self, caller: TaskId, keys: Sequence[str]) -> dict[str, CallId]:
        if not self._held(caller).counts.made:
            return {}
        self._send_calls()
        found = self._read_calls({"caller": caller, "key": {"$in": list(keys)}})
        return {call.key: call.id for call in found}

    def open_count(self, task: TaskId) -> int:
        return self._held(task).counts.open

    def untaken_count(self, task: TaskId) -> int:
        return self._held(task).counts.untaken

    def first_open(self, task: TaskId) -> Call | None:
        held = self._held(task)
        if not held.counts.open:
            return None
        if held.stored is None or not held.stored["open_calls"]:
            # all of them were made here
            mine = [
                call
                for call in self._calls.values()
                if call is not None and call.caller == task and call.status is CallStatus.OPEN
            ]
            return min(mine, key=lambda call: (call.deadline, call.id))
        self._send_calls()
        return _first(self._read_calls({"caller": task, "status": "open"}, _FIRST_DEADLINE, 1))

    def replies_of(self, task: TaskId) -> list[Call]:
        if not self._held(task).counts.untaken:
            return []
        self._send_calls()
        found = self._read_calls({"caller": task, "untaken": True})
        return sorted(found, key=lambda call: (call.replied_at, call.id))

    def put_call(self, call: Call) -> Call:
        old = self._calls.get(call.id)
        caller = self._held(call.caller)
        if old is None:
            caller.counts.made += 1
            caller.counts.open += 1
        else:
            caller.counts.open -= _is_open(old) - _is_open(call)
            caller.counts.untaken -= _is_untaken(old) - _is_untaken(call)
        self._calls[call.id] = call
        self._changed_calls[call.id] = None
        # even if nothing else changes there: whoever decides by its calls writes it too
        self._changed_tasks[call.caller] = None
        return call

    def _read_calls(
        self, where: Document, sort: list[tuple[str, int]] | None = None, limit: int = 0
    ) -> list[Call]:
        found: list[Call] = []
        for row in self.transaction.find("call", where, sort=sort, limit=limit):
            call = self._calls.get(row["_id"])
            if call is None:
                call = self._calls[row["_id"]] = self._documents.call_out(row)
                self._stored_calls[call.id] = row
            found.append(call)
        return found

    # Lanes

    def is_wanted(self, tenant: str, lane: str) -> bool:
        return self._lanes.get(tenant, lane).is_wanted

    def holder(self, tenant: str, lane: str) -> TaskId | None:
        return self._lanes.get(tenant, lane).holder

    def first_queued(self, tenant: str, lane: str) -> Task | None:
        if not self._lanes.get(tenant, lane).queued:
            return None
        self._send_tasks()
        queue = {"tenant": tenant, "lane": lane, "state": "queued"}
        return _first(self._read_tasks(queue, _FIRST_IN_QUEUE, 1))

    # The rest

    def find_worker(self, worker: WorkerId) -> Worker | None:
        if worker not in self._workers:
            row = self.transaction.find_one("worker", {"_id": worker})
            self._workers[worker] = None if row is None else worker_out(row)
        return self._workers[worker]

    def put_worker(self, worker: Worker) -> None:
        self._workers[worker.id] = worker
        self.transaction.write(
            "worker", ReplaceOne({"_id": worker.id}, worker_in(worker), upsert=True)
        )

    def put_card(self, card: Card) -> None:
        if card.hash in self._cards:
            return
        self._cards.add(card.hash)
        row = {"kind": card.kind, "content": self._values.pack(card.content)}
        self.transaction.write(
            "card", UpdateOne({"_id": card.hash}, {"$setOnInsert": row}, upsert=True)
        )

    def extend_box(self, box: str, hashes: list[CardHash]) -> None:
        """Appends to the box of a task, which is as long as the task says. # I8"""
        start = self.task(TaskId(box)).seq
        self.transaction.write("box_card", *map(InsertOne, box_in(box, start, hashes)))

    def add_loss(self, loss: Loss) -> None:
        self.transaction.write("loss", InsertOne(loss_in(loss)))
        # a worker that renews meanwhile must see it, or make it not happen
        self.transaction.write("worker", UpdateOne({"_id": loss.worker}, {"$inc": {"losses": 1}}))

    def append_outbox(self, topic: str, task: TaskId, run: RunId, body: Json) -> None:
        row = self._documents.entry_in(topic, task, run, body, self.now)
        self.transaction.write("outbox", InsertOne(row))

    # Writing

    def send(self) -> None:
        """Has everything written that was put."""
        self._send_tasks()
        self._send_calls()
        self._lanes.send()
        self._note_orphans()

    def _send_tasks(self) -> None:
        for task in self._changed_tasks:
            held = self._held(task)
            row = self._documents.task_in(
                held.task, held.caller, held.counts, held.last_fence, held.stored
            )
            if held.stored is None:
                self.transaction.write("task", InsertOne(row))
                self._send_keys(held.task)
            elif changes := _changes(held.stored, row):
                self.transaction.write("task", UpdateOne({"_id": task}, {"$set": changes}))
            else:
                # a decision depended on it
                self.transaction.write("task", UpdateOne({"_id": task}, {"$inc": {"touched": 1}}))
            held.stored = row
        self._changed_tasks.clear()

    def _send_keys(self, task: Task) -> None:
        """What makes a new task the only one of its kind."""
        if task.idem is not None:
            key = lane_id(task.tenant, task.idem)
            self.transaction.write("idem", InsertOne({"_id": key, "task": task.id}))
        if task.redrives is not None:
            driven = UpdateOne({"_id": task.redrives}, {"$set": {"redriven": task.id}})
            self.transaction.write("task", driven)

    def _send_calls(self) -> None:
        for call_id in self._changed_calls:
            call = self._calls[call_id]
            assert call is not None
            row, stored = self._documents.call_in(call), self._stored_calls.get(call_id)
            if stored is None:
                self.transaction.write("call", InsertOne(row))
            elif changes := _changes(stored, row):
                self.transaction.write("call", UpdateOne({"_id": call_id}, {"$set": changes}))
            self._stored_calls[call_id] = row
        self._changed_calls.clear()

    def _note_orphans(self) -> None:
        """Tasks whose caller has ended without them, for the sweep."""
        if not self._ended:
            return
        where = {"caller": {"$in": self._ended, "$gt": ""}, "alive": True}
        for row in self.transaction.find("task", where, fields={"_id": 1}):
            self.transaction.write(
                "orphan", UpdateOne({"_id": row["_id"]}, {"$setOnInsert": {"left": 1}}, upsert=True)
            )
        self._ended.clear()


def _first(found: list[_Row]) -> _Row | None:
    return found[0] if found else None


def _changes(old: Document, new: Document) -> Document:
    return {field: value for field, value in new.items() if old.get(field) != value}


def _is_open(call: Call) -> bool:
    return call.status is CallStatus.OPEN


def _is_untaken(call: Call) -> bool:
    return call.status is not CallStatus.OPEN and not call.applied
