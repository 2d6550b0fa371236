"""Reading, dead letters, and the end of finished runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from pymongo import DeleteMany

from afl.kernel import rules
from afl.kernel.errors import BadRequest
from afl.kernel.machine.transitions import make_root
from afl.kernel.model import (
    Call,
    CallId,
    Loss,
    Outcome,
    Reason,
    RunId,
    Standing,
    State,
    Task,
    TaskId,
    Worker,
)
from afl.kernel.mongo.core import Core, no_task
from afl.kernel.mongo.rows import lane_id, loss_out, worker_out
from afl.kernel.mongo.transaction import Document, MongoTransaction
from afl.kernel.mongo.values import to_micros
from afl.kernel.mongo.working_set import WorkingSet

#: How many tasks a look at finished runs takes in.
_AT_ONCE = 1000


class MongoQueries(Core):
    """See `port.Queries` for what each method promises."""

    def get_task(self, task: TaskId) -> Task | None:
        row = self._database.find_one("task", {"_id": task})
        return None if row is None else self._documents.task_out(row)

    def get_call(self, call: CallId) -> Call | None:
        row = self._database.find_one("call", {"_id": call})
        return None if row is None else self._documents.call_out(row)

    def calls_of(self, caller: TaskId) -> list[Call]:
        return self._calls({"caller": caller})

    def find_call(self, caller: TaskId, key: str) -> Call | None:
        found = self._calls({"caller": caller, "key": key})
        return found[0] if found else None

    def find_calls(self, caller: TaskId, keys: Sequence[str]) -> list[Call]:
        return self._calls({"caller": caller, "key": {"$in": list(keys)}})

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
        if limit <= 0:
            return []
        wanted = {
            "run": run,
            "state": None if state is None else state.value,
            "outcome": None if outcome is None else outcome.value,
            "dead": dead,
            "_id": None if after is None else {"$gt": after},
        }
        where: Document = {field: value for field, value in wanted.items() if value is not None}
        if state not in (None, State.CLOSED):
            # as the index of what is unfinished has it
            where["alive"] = True
            if state is not State.RUNNING:
                where |= {"worker": None, "claim_token": None}
        return self._tasks(where, [("_id", 1)], limit)

    def why(self, task: TaskId) -> Reason | None:
        found = self.standing([task])
        if not found:
            raise no_task(task)
        return found[0].reason

    def standing(self, tasks: Sequence[TaskId]) -> list[Standing]:
        found = self._tasks({"_id": {"$in": list(tasks)}})
        now = self._database.now()
        workers = self._workers_for(found)
        holders = self._holders(found)
        first_open = self._first_open([task.id for task in found if task.state is State.WAITING])
        return [
            Standing(
                task,
                rules.present_reason(
                    task,
                    now=now,
                    served=any(rules.worker_serves(worker, task, now) for worker in workers),
                    holder=holders.get((task.tenant, task.lane or "")),
                    first_open=first_open.get(task.id),
                ),
                first_open.get(task.id),
            )
            for task in found
        ]

    def losses_of(self, tasks: Sequence[TaskId]) -> list[Loss]:
        rows = self._database.find("loss", {"task": {"$in": list(tasks)}}, sort=[("fence", 1)])
        return [loss_out(row) for row in rows]

    def _calls(self, where: Document) -> list[Call]:
        return [
            self._documents.call_out(row)
            for row in self._database.find("call", where, sort=[("_id", 1)])
        ]

    def _workers_for(self, tasks: Sequence[Task]) -> list[Worker]:
        """Those that might serve the tasks, if one of them is ready."""
        if not any(task.state is State.READY for task in tasks):
            return []
        since = {"expires_at": {"$gt": to_micros(self._database.now())}}
        return [worker_out(row) for row in self._database.find("worker", since)]

    def _holders(self, tasks: Sequence[Task]) -> dict[tuple[str, str], TaskId | None]:
        keys = [
            lane_id(task.tenant, task.lane)
            for task in tasks
            if task.state is State.QUEUED and task.lane is not None
        ]
        if not keys:
            return {}
        rows = self._database.find("lane", {"_id": {"$in": keys}})
        return {(row["_id"]["tenant"], row["_id"]["name"]): row["holder"] for row in rows}

    def _first_open(self, tasks: list[TaskId]) -> dict[TaskId, Call]:
        """The open call of each task with the first deadline."""
        if not tasks:
            return {}
        rows = self._database.aggregate(
            "call",
            [
                {"$match": {"caller": {"$in": tasks}, "status": "open"}},
                {"$sort": {"caller": 1, "deadline": 1, "_id": 1}},
                {"$group": {"_id": "$caller", "first": {"$first": "$$ROOT"}}},
            ],
        )
        return {TaskId(row["_id"]): self._documents.call_out(row["first"]) for row in rows}


class MongoDeadLetters(Core):
    """See `port.DeadLetters` for what each method promises."""

    def dead_letters(self, limit: int = 100, after: TaskId | None = None) -> list[Task]:
        if limit <= 0:
            return []
        where: Document = {"dead": True, "redriven": {"$exists": False}}
        if after is not None:
            where["_id"] = {"$gt": after}
        return self._tasks(where, [("_id", 1)], limit)

    def redrive(self, task: TaskId) -> Task:
        def work(rows: WorkingSet) -> Task:
            dead = rows.find_task(task)
            if dead is None:
                raise no_task(task)
            if not dead.dead:
                raise BadRequest(f"task {task} was not given up, so there is nothing to redrive")
            known = rows.redriven(task)
            if known is not None:
                return known
            return make_root(rows, rows, rules.redrive_spec(dead), redrives=task)

        return self._work(work)


class MongoRetention(Core):
    """See `port.Retention` for what each method promises."""

    def rotate(self, older_than: timedelta, limit: int = 1000) -> int:
        before = to_micros(self._database.now() - older_than)
        gone = 0
        last = ""
        while gone < limit and (runs := self._runs_after(last, before)):
            for run in runs:
                if gone >= limit:
                    break
                gone += self._remove(run, before)
                last = run
        return gone

    def _remove(self, run: str, before: int) -> int:
        return self._database.transact(lambda transaction: _remove(transaction, run, before))

    def _runs_after(self, last: str, before: int) -> list[str]:
        """Runs with a task that closed so long ago, by id."""
        rows = self._database.aggregate(
            "task",
            [
                {"$match": {"run": {"$gt": last}, "alive": False, "closed_at": {"$lte": before}}},
                {"$sort": {"run": 1}},
                {"$limit": _AT_ONCE},
                {"$group": {"_id": "$run"}},
                {"$sort": {"_id": 1}},
            ],
        )
        return [row["_id"] for row in rows]


def _remove(transaction: MongoTransaction, run: str, before: int) -> int:
    """Removes a run, if all of it closed so long ago. Answers how many tasks it had."""
    open_or_late = {"run": run, "$or": [{"alive": True}, {"closed_at": {"$gt": before}}]}
    if transaction.find_one("task", open_or_late, fields={"_id": 1}) is not None:
        return 0
    rows = transaction.find("task", {"run": run}, fields={"tenant": 1, "idem": 1})
    tasks = [row["_id"] for row in rows]
    idems = [lane_id(row["tenant"], row["idem"]) for row in rows if row["idem"] is not None]
    transaction.write("task", DeleteMany({"run": run}))
    transaction.write("call", DeleteMany({"run": run}))
    transaction.write("box_card", DeleteMany({"box": {"$in": tasks}}))
    transaction.write("loss", DeleteMany({"task": {"$in": tasks}}))
    transaction.write("orphan", DeleteMany({"_id": {"$in": tasks}}))
    if idems:
        transaction.write("idem", DeleteMany({"_id": {"$in": idems}}))
    return len(tasks)
