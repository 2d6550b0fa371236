"""What time made wrong: found by one statement, put right item by item, each in a transaction of
its own, so that one bad item cannot stop the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from afl.kernel import rules
from afl.kernel.errors import StoreUnavailable
from afl.kernel.model import Json, Swept, TaskId
from afl.kernel.postgres.core import Core
from afl.kernel.postgres.database import Row
from afl.kernel.postgres.packing import json_text
from afl.kernel.postgres.rows import call_of, task_of

Item = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Kind:
    """A statement that finds items, one that mends a single one, and what it needs to know."""

    find: str
    mend: str
    item: Callable[[Row], Item]


def _worker(row: Row) -> Item:
    return {"worker": row[0]}


def _lost_task(row: Row) -> Item:
    task = task_of(row)
    return _with_error({"task": task.id}, rules.crash_error(task, task.crashes + 1))


def _late_call(row: Row) -> Item:
    call = call_of(row)
    return _with_error({"call": call.id}, rules.call_timeout_error(call))


def _late_task(row: Row) -> Item:
    task = task_of(row)
    return _with_error({"task": task.id}, rules.task_timeout_error(task))


def _orphan(row: Row) -> Item:
    return _with_error({"task": row[0]}, rules.orphan_error(TaskId(row[1])))


def _lane(row: Row) -> Item:
    return {"tenant": row[0], "lane": row[1]}


def _with_error(item: Item, error: Json) -> Item:
    return {**item, "error": json_text(error)}


KINDS = (
    Kind("find_lost_workers", "expire_worker", _worker),
    Kind("find_lost_tasks", "recover_task", _lost_task),
    Kind("find_late_calls", "time_out_call", _late_call),
    Kind("find_late_tasks", "time_out_task", _late_task),
    Kind("find_orphans", "stop_orphan", _orphan),
    Kind("find_free_lanes", "mend_lane", _lane),
)


class PostgresSweep(Core):
    """See `port.TaskQueue.sweep`."""

    def sweep(self, limit: int = 100) -> Swept:
        self._levels.mend()
        self._row("forget_orphans", {})
        counts = Counter(mended for kind in KINDS for mended in self._mend(kind, limit))
        return Swept(**counts)

    def _mend(self, kind: Kind, limit: int) -> Iterator[str]:
        for found in self._rows(kind.find, {"limit": limit}):
            try:
                row = self._row(kind.mend, kind.item(found))
            except StoreUnavailable:
                # this one is contended, or nothing can be reached; the next sweep will tell
                continue
            if row is not None and row[0] is not None:
                yield row[0]
