"""The memory store: its transactions, and what can be read from it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import timedelta

from afl.kernel import rules
from afl.kernel.errors import BadRequest
from afl.kernel.machine.copies import call_out, entry_out, task_out
from afl.kernel.machine.transitions import make_root
from afl.kernel.memory.core import Core
from afl.kernel.memory.queue import MemoryTaskQueue
from afl.kernel.memory.rows import Rows
from afl.kernel.memory.shelves import MemoryCards, MemoryLocks, MemoryWorkers
from afl.kernel.model import (
    Announcement,
    Call,
    CallId,
    Loss,
    OutboxEntry,
    Outcome,
    Reason,
    RunId,
    Standing,
    State,
    Task,
    TaskId,
)
from afl.kernel.port import Transaction
from afl.kernel.requests import check_announcement


class MemoryQueries(Core):
    """See `port.Queries` for what each method promises."""

    def get_task(self, task: TaskId) -> Task | None:
        with self._lock:
            row = self._rows.tasks.get(task)
            return None if row is None else task_out(row)

    def get_call(self, call: CallId) -> Call | None:
        with self._lock:
            row = self._rows.calls.get(call)
            return None if row is None else call_out(row)

    def calls_of(self, caller: TaskId) -> list[Call]:
        with self._lock:
            calls = self._rows.calls_of.get(caller, {})
            return [call_out(self._rows.calls[call]) for call in calls.values()]

    def find_call(self, caller: TaskId, key: str) -> Call | None:
        with self._lock:
            call = self._rows.calls_of.get(caller, {}).get(key)
            return None if call is None else call_out(self._rows.calls[call])

    def find_calls(self, caller: TaskId, keys: Sequence[str]) -> list[Call]:
        with self._lock:
            calls = self._rows.calls_of.get(caller, {})
            return [call_out(self._rows.calls[calls[key]]) for key in set(keys) if key in calls]

    def find_tasks(
        self,
        *,
        run: RunId | None = None,
        state: State | None = None,
        outcome: Outcome | None = None,
        dead: bool | None = None,
        after: TaskId | None = None,
        limit: int = 100,
    ) -> list[Task]:
        with self._lock:
            rows = self._rows
            candidates = rows.tasks.keys() if run is None else rows.runs.get(run, set())
            found: list[Task] = []
            for task in map(rows.tasks.__getitem__, sorted(candidates)):
                if len(found) >= limit:
                    break
                if (
                    (after is None or task.id > after)
                    and (state is None or task.state is state)
                    and (outcome is None or task.outcome is outcome)
                    and (dead is None or task.dead is dead)
                ):
                    found.append(task_out(task))
            return found

    def why(self, task: TaskId) -> Reason | None:
        with self._transaction as rows:
            return self._present_reason(rows, self._task(task))

    def standing(self, tasks: Sequence[TaskId]) -> list[Standing]:
        with self._transaction as rows:
            return [
                Standing(
                    task_out(row),
                    self._present_reason(rows, row),
                    None if (first := rows.first_open(row.id)) is None else call_out(first),
                )
                for row in (rows.tasks.get(task) for task in set(tasks))
                if row is not None
            ]

    def losses_of(self, tasks: Sequence[TaskId]) -> list[Loss]:
        with self._lock:
            found = [loss for task in set(tasks) for loss in self._rows.losses.get(task, ())]
            return sorted(found, key=lambda loss: loss.fence)

    def _present_reason(self, rows: Rows, row: Task) -> Reason | None:
        lane = None if row.lane is None else rows.lanes.get((row.tenant, row.lane))
        return rules.present_reason(
            row,
            now=rows.now,
            served=any(rules.worker_serves(w, row, rows.now) for w in rows.workers.values()),
            holder=None if lane is None else lane.holder,
            first_open=rows.first_open(row.id),
        )


class MemoryDeadLetters(Core):
    """See `port.DeadLetters` for what each method promises."""

    def dead_letters(self, limit: int = 100, after: TaskId | None = None) -> list[Task]:
        with self._lock:
            letters = sorted(
                task
                for task in self._rows.dead
                if task not in self._rows.redriven and (after is None or task > after)
            )
            return [task_out(self._rows.tasks[task]) for task in letters[:limit]]

    def redrive(self, task: TaskId) -> Task:
        with self._transaction as rows:
            dead = self._task(task)
            if not dead.dead:
                raise BadRequest(f"task {task} was not given up, so there is nothing to redrive")
            if task in rows.redriven:
                return task_out(rows.tasks[rows.redriven[task]])
            spec = rules.redrive_spec(dead)
            return task_out(make_root(rows, self._ids, spec, redrives=task))


class MemoryOutbox(Core):
    """See `port.Outbox` for what each method promises."""

    def announce(self, transaction: Transaction, entry: Announcement) -> None:
        body = check_announcement(entry)
        if not self._rows.journal.is_open:
            raise BadRequest("the transaction is over; `writes` must not keep it")
        self._rows.append_outbox(entry.topic, entry.task, entry.run, body)

    def read_outbox(self, after: int = 0, limit: int = 100) -> list[OutboxEntry]:
        with self._lock:
            start = self._position(after)
            return [entry_out(entry) for entry in self._rows.outbox[start : start + limit]]

    def trim_outbox(self, up_to: int) -> int:
        with self._transaction as rows:
            end = self._position(up_to)
            del rows.outbox[:end]
            return end

    def _position(self, entry: int) -> int:
        """How many entries have this id or a smaller one."""
        return bisect_right(self._rows.outbox, entry, key=lambda each: each.id)


class MemoryRetention(Core):
    """See `port.Retention` for what each method promises."""

    def rotate(self, older_than: timedelta, limit: int = 1000) -> int:
        with self._transaction as rows:
            before = rows.now - older_than
            gone = 0
            for run in [run for run in rows.runs if run not in rows.unfinished]:
                if gone >= limit:
                    break
                tasks = [rows.tasks[task] for task in rows.runs[run]]
                if any(task.closed_at is None or task.closed_at > before for task in tasks):
                    continue
                for task in tasks:
                    for call in list(rows.calls_of.get(task.id, {}).values()):
                        rows.drop_call(rows.calls[call])
                    rows.drop_box(task.id)
                    rows.drop_losses(task.id)
                    rows.drop_task(task)
                gone += len(tasks)
            return gone


class MemoryStore(
    MemoryTaskQueue,
    MemoryQueries,
    MemoryCards,
    MemoryWorkers,
    MemoryDeadLetters,
    MemoryOutbox,
    MemoryLocks,
    MemoryRetention,
):
    """Everything a store offers, in memory. Threads may share one; processes cannot."""
