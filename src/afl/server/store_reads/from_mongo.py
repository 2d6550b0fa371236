"""The reads on MongoDB: by the index that claims go by, each up to a cap.

That index has each list, name and priority in one stretch. What there is of them is found by asking
for the first that was not seen yet, which goes to the ends of the stretches and not through them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from afl.kernel.model import State, Task, TaskId, WorkerId
from afl.kernel.mongo.rows import RowDocuments, held_by
from afl.kernel.mongo.store import MongoStore
from afl.kernel.mongo.transaction import Document
from afl.kernel.mongo.values import Values, to_micros, to_time
from afl.runtime.states import RunState
from afl.server.store_reads.port import FOR_NO_WORKER, Backlog, ListTotals

_INDEX = "claimable"
_NAMES = 20
_PLACES = 2000
#: How many runs of a state, and how many streams of a run, are looked at for a mark.
_OPEN_RUNS = 500
_STREAMS = 100
_OPEN = (RunState.CREATED, RunState.RUNNING, RunState.PAUSED)


class MongoReads:
    """See `port.StoreReads` for what each method promises."""

    def __init__(self, kernel: MongoStore) -> None:
        self._database = kernel.database
        self._documents = RowDocuments(Values(kernel.database))

    def backlogs(self, cap: int) -> list[Backlog]:
        now = to_micros(self._database.now())
        places = sorted(islice(self._places(), _PLACES))
        found = [self._backlog(list_, name, now, cap) for list_, name in places]
        return [backlog for backlog in found if backlog.ready + backlog.later]

    def _backlog(self, list_: str, name: str, now: int, cap: int) -> Backlog:
        place = _place(list_, name)
        due = {**place, "run_at": {"$lte": now}}
        rows = self._found(due, _NAMES + 1)
        ready = len(rows)
        if ready > _NAMES:
            ready = self._count(due, cap)
            # of each priority those that have waited longest
            rows = [row for order in self._orders(place) for row in self._oldest(due, order)]
        return Backlog(
            list_,
            name,
            tuple(sorted({row["name"] for row in rows})),
            min(ready, cap),
            self._count({**place, "run_at": {"$gt": now}}, cap),
            to_time(min((row["run_at"] for row in rows), default=None)),
        )

    def totals(self, cap: int) -> list[ListTotals]:
        counts = {
            "running": self._by_list(held_by(), cap),
            "queued": self._by_list({"state": "queued"}, cap),
            "dead": self._by_list({"dead": True, "redriven": {"$exists": False}}, cap),
        }
        lists = sorted({list_ for each in counts.values() for list_ in each})
        return [
            ListTotals(list_, **{what: each.get(list_, 0) for what, each in counts.items()})
            for list_ in lists
        ]

    def held(self, workers: Sequence[WorkerId], each: int) -> Mapping[WorkerId, list[Task]]:
        return {
            worker: sorted(
                self._tasks(held_by(worker), limit=each),
                key=lambda task: task.id,
            )
            for worker in workers
        }

    def oldest(self, list: str, short_name: str, limit: int) -> list[Task]:
        now = to_micros(self._database.now())
        place = _place(list, short_name)
        due = {**place, "run_at": {"$lte": now}}
        rows = [row for order in self._orders(place) for row in self._oldest(due, order, limit)]
        rows.sort(key=lambda row: (row["run_at"], row["_id"]))
        still_ready = {"_id": {"$in": [row["_id"] for row in rows[:limit]]}, "state": "ready"}
        return sorted(self._tasks(still_ready), key=lambda task: (task.run_at, task.id))

    def in_state(self, state: State, after: TaskId | None, limit: int) -> list[Task]:
        where = {"state": state.value, "_id": {"$gt": after or ""}}
        return self._tasks(where, [("_id", 1)], limit)

    def runs_mark(self) -> str:
        newest = self._database.find("run", {}, fields={"_id": 1}, sort=[("_id", -1)], limit=1)
        ended = self._database.find(
            "run",
            {"finished_at": {"$exists": True}},
            fields={"finished_at": 1},
            sort=[("finished_at", -1), ("_id", -1)],
            limit=1,
        )
        still_open = [
            self._database.aggregate(
                "run", [{"$match": {"word": word}}, {"$limit": _OPEN_RUNS}, {"$count": "count"}]
            )
            for word in _OPEN
        ]
        return str((newest, ended, still_open))

    def logs_mark(self, run: str) -> str:
        streams = self._database.find(
            "log_stream",
            {"run": run},
            fields={"next_seq": 1, "last_us": 1, "closed_us": 1},
            sort=[("opened_us", -1), ("_id", -1)],
            limit=_STREAMS,
        )
        said = sum(each["next_seq"] for each in streams)
        last_us = max((each["last_us"] for each in streams), default=0)
        closed = sum("closed_us" in each for each in streams)
        return f"{len(streams)} {said} {last_us} {closed}"

    def _places(self) -> Iterator[tuple[str, str]]:
        """The lists that workers claim from, with the short names that there is something of."""
        lists = list(FOR_NO_WORKER)
        while rows := self._found({"state": "ready", "list": {"$nin": lists}}, 1):
            lists.append(rows[0]["list"])
            names: list[str] = []
            place = {"state": "ready", "list": lists[-1]}
            # a task is in the index by its name and by its short name
            while rows := self._found({**place, "served_as": {"$elemMatch": {"$nin": names}}}, 1):
                names += rows[0]["served_as"]
            yield from ((lists[-1], name) for name in {*names} if "." not in name)

    def _orders(self, place: Document) -> list[int]:
        """The places of its priorities in the index."""
        orders: list[int] = []
        while rows := self._found({**place, "order": {"$nin": orders}}, 1):
            orders.append(rows[0]["order"])
        return orders

    def _oldest(self, due: Document, order: int, limit: int = _NAMES) -> list[Document]:
        return self._found({**due, "order": order}, limit, sort={"run_at": 1, "_id": 1})

    def _found(self, where: Document, limit: int, **more: Document) -> list[Document]:
        """Where ready tasks are in the index, of up to so many."""
        fields = dict.fromkeys(("list", "served_as", "order", "run_at", "name"), 1)
        asked = {"filter": where, "projection": fields, "limit": limit, "batchSize": limit}
        return self._by_index("find", singleBatch=True, **asked, **more)

    def _count(self, where: Document, cap: int) -> int:
        counted = [{"$match": where}, {"$limit": cap}, {"$count": "count"}]
        found = self._by_index("aggregate", pipeline=counted, cursor={})
        return int(found[0]["count"]) if found else 0

    def _by_index(self, command: str, **asked: Any) -> list[Document]:  # noqa: ANN401 - options
        # with a hint: there are other indexes, of which some are quick only as long as it is empty
        answer = self._database.command(
            command, "task", hint=_INDEX, readConcern={"level": "majority"}, **asked
        )
        found: list[Document] = answer["cursor"]["firstBatch"]
        return found

    def _by_list(self, where: Document, cap: int) -> dict[str, int]:
        pipeline: list[Document] = [
            {"$match": where},
            {"$limit": cap},
            {"$group": {"_id": "$list", "count": {"$sum": 1}}},
        ]
        return {row["_id"]: row["count"] for row in self._database.aggregate("task", pipeline)}

    def _tasks(
        self, where: Document, sort: Sequence[tuple[str, int]] | None = None, limit: int = 0
    ) -> list[Task]:
        found = self._database.find("task", where, sort=sort, limit=limit)
        return [self._documents.task_out(row) for row in found]


def _place(list_: str, short_name: str) -> Document:
    """What is ready of a list and a name."""
    return {"state": "ready", "list": list_, "served_as": short_name}
