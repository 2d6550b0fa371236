"""What time makes wrong, as this store finds it, with how each item is put right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from pymongo import DeleteOne

from afl.kernel.machine import mending, transitions
from afl.kernel.model import Swept, TaskId, WorkerId
from afl.kernel.mongo.core import Core
from afl.kernel.mongo.rows import held_by
from afl.kernel.mongo.values import to_micros
from afl.kernel.mongo.working_set import WorkingSet


class MongoSweep(Core):
    """See `port.TaskQueue.sweep` for what it promises."""

    def sweep(self, limit: int = 100) -> Swept:
        counts: Counter[str] = Counter()
        kinds: tuple[tuple[Callable[[int], list[Any]], Callable[..., str | None]], ...] = (
            (self._lost_workers, mending.give_up_worker),
            (self._lost_tasks, mending.recover_task),
            (self._late_calls, mending.time_out_call),
            (self._late_tasks, mending.time_out_task),
            (self._orphans, _stop_orphan),
            (self._free_lanes, _promote),
        )
        for find, mend in kinds:
            for item in find(limit):
                if (mended := self._mend(mend, item)) is not None:
                    counts[mended] += 1
        return Swept(**counts)

    def _mend(self, mend: Callable[..., str | None], item: object) -> str | None:
        return self._work(lambda rows: mend(rows, item))

    def _lost_workers(self, limit: int) -> list[str]:
        live = {"state": {"$in": ["startup", "running"]}, "expires_at": {"$lte": self._now()}}
        return self._ids_of("worker", live, [("expires_at", 1), ("_id", 1)], limit)

    def _lost_tasks(self, limit: int) -> list[str]:
        """By the expiry of their workers, then id. Few workers hold something; most that there
        ever were do not."""
        holders = self._database.distinct("task", "worker", held_by())
        expired = self._ids_of(
            "worker",
            {"_id": {"$in": holders}, "expires_at": {"$lte": self._now()}},
            [("expires_at", 1), ("_id", 1)],
        )
        lost: list[str] = []
        for worker in expired:
            if len(lost) < limit:
                held = held_by(WorkerId(worker))
                lost += self._ids_of("task", held, [("_id", 1)], limit - len(lost))
        return lost

    def _late_calls(self, limit: int) -> list[str]:
        late = {"status": "open", "deadline": {"$lte": self._now()}}
        return self._ids_of("call", late, [("deadline", 1), ("_id", 1)], limit)

    def _late_tasks(self, limit: int) -> list[str]:
        late = {"alive": True, "deadline": {"$gt": 0, "$lte": self._now()}}
        return self._ids_of("task", late, [("deadline", 1), ("_id", 1)], limit)

    def _orphans(self, limit: int) -> list[str]:
        return self._ids_of("orphan", {}, [("_id", 1)], limit)

    def _free_lanes(self, limit: int) -> list[Any]:
        return self._ids_of("lane", {"holder": None}, [("_id", 1)], limit)

    def _now(self) -> int:
        return to_micros(self._database.now())

    def _ids_of(
        self, collection: str, where: dict[str, Any], sort: list[tuple[str, int]], limit: int = 0
    ) -> list[Any]:
        found = self._database.find(collection, where, fields={"_id": 1}, sort=sort, limit=limit)
        return [row["_id"] for row in found]


def _stop_orphan(rows: WorkingSet, task: TaskId) -> str | None:
    rows.transaction.write("orphan", DeleteOne({"_id": task}))
    return mending.stop_orphan(rows, task)


def _promote(rows: WorkingSet, lane: dict[str, str]) -> str | None:
    """Gives a lane that nobody holds to who queues for it. # I7"""
    if rows.holder(lane["tenant"], lane["name"]) is not None:
        return None
    first = rows.first_queued(lane["tenant"], lane["name"])
    if first is None:
        return None
    transitions.promote(rows, first)
    return "lanes_promoted"
