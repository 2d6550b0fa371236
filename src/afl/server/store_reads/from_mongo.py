"""The reads on MongoDB: by the index that claims go by, each up to a cap.

That index has each list, name and priority in one stretch. What there is of them is found by asking
for the first that was not seen yet, which goes to the ends of the stretches and not through them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

from afl.kernel.model import State, Task, TaskId, WorkerId
from afl.kernel.mongo.rows import RowDocuments
from afl.kernel.mongo.store import MongoStore
from afl.kernel.mongo.transaction import Document
from afl.kernel.mongo.values import Values, to_micros, to_time
from afl.runtime.states import RunState
from afl.server.store_reads.port import FOR_NO_WORKER, Backlog, ListTotals

_INDEX = "claimable"
_NAMES = 20
_LEVELS = 2000
#: How many runs of a state, and how many streams of a run, are looked at for a mark.
_OPEN_RUNS = 500
_STREAMS = 100
_OPEN = (RunState.CREATED, RunState.RUNNING, RunState.PAUSED)


@dataclass(frozen=True, slots=True)
class _Level:
    """The ready tasks of one short name in one list with one priority."""

    list: str
    short_name: str
    order: int

    @property
    def where(self) -> Document:
        return {
            "state": "ready",
            "list": self.list,
            "served_as": self.short_name,
            "order": self.order,
        }


class MongoReads:
    """See `port.StoreReads` for what each method promises."""

    def __init__(self, kernel: MongoStore) -> None:
        self._database = kernel.database
        self._documents = RowDocuments(Values(kernel.database))

    def backlogs(self, cap: int) -> list[Backlog]:
        levels = sorted(
            islice(self._all_levels(), _LEVELS),
            key=lambda level: (level.list, level.short_name, level.order),
        )
        found = []
        for (list_, name), those in groupby(
            levels, key=lambda level: (level.list, level.short_name)
        ):
            backlog = self._backlog(list_, name, list(those), cap)
            if backlog.ready + backlog.later:
                found.append(backlog)
        return found

    def _backlog(self, list_: str, name: str, levels: list[_Level], cap: int) -> Backlog:
        now = to_micros(self._database.now())
        ready = later = 0
        names: set[str] = set()
        oldest: list[int] = []
        for level in levels:
            due = {**level.where, "run_at": {"$lte": now}}
            first = self._oldest(due, {"run_at": 1, "name": 1}, _NAMES)
            names.update(row["name"] for row in first)
            oldest += [row["run_at"] for row in first[:1]]
            ready += self._count(due, cap) if len(first) == _NAMES else len(first)
            later += self._count({**level.where, "run_at": {"$gt": now}}, cap)
        since = to_time(min(oldest, default=None))
        return Backlog(list_, name, tuple(sorted(names)), min(ready, cap), min(later, cap), since)

    def totals(self, cap: int) -> list[ListTotals]:
        counts = {
            "running": self._by_list({"state": "running"}, cap),
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
                self._tasks({"worker": worker, "state": "running"}, limit=each),
                key=lambda task: task.id,
            )
            for worker in workers
        }

    def oldest(self, list: str, short_name: str, limit: int) -> list[Task]:
        now = to_micros(self._database.now())
        rows = [
            row
            for level in self._levels(list, short_name)
            for row in self._oldest({**level.where, "run_at": {"$lte": now}}, {"run_at": 1}, limit)
        ]
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

    def _all_levels(self) -> Iterator[_Level]:
        """Of every list that workers claim from."""
        lists = list(FOR_NO_WORKER)
        while found := self._first({"state": "ready", "list": {"$nin": lists}}):
            lists.append(found["list"])
            names: list[str] = []
            # a task is in the index by its name and by its short name
            while found := self._first(
                {
                    "state": "ready",
                    "list": lists[-1],
                    "served_as": {"$elemMatch": {"$nin": names}},
                }
            ):
                names += found["served_as"]
            for name in sorted({name for name in names if "." not in name}):
                yield from self._levels(lists[-1], name)

    def _levels(self, list_: str, name: str) -> Iterator[_Level]:
        orders: list[int] = []
        where = {"state": "ready", "list": list_, "served_as": name}
        while found := self._first({**where, "order": {"$nin": orders}}):
            orders.append(found["order"])
            yield _Level(list_, name, orders[-1])

    def _first(self, where: Document) -> Document | None:
        """The place of a task among the levels."""
        fields = {"list": 1, "served_as": 1, "order": 1}
        found = self._by_index("find", filter=where, projection=fields, limit=1, singleBatch=True)
        return found[0] if found else None

    def _oldest(self, where: Document, fields: Document, limit: int) -> list[Document]:
        """The tasks of one level that have waited longest."""
        return self._by_index(
            "find",
            filter=where,
            projection=fields,
            sort={"run_at": 1, "_id": 1},
            limit=limit,
            batchSize=limit,
            singleBatch=True,
        )

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
