"""What every role of the MongoDB store shares."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

from afl.base.ids import IdSource
from afl.kernel.errors import NotFound
from afl.kernel.model import CallId, Task, TaskId
from afl.kernel.mongo.database import Database
from afl.kernel.mongo.rows import RowDocuments
from afl.kernel.mongo.transaction import Document, MongoTransaction
from afl.kernel.mongo.values import Values
from afl.kernel.mongo.working_set import WorkingSet

T = TypeVar("T")


class Core:
    """The database, how rows stand in it, and a source of ids."""

    def __init__(self, database: Database, ids: IdSource) -> None:
        self._database = database
        self._values = Values(database)
        self._documents = RowDocuments(self._values)
        self._ids = ids
        self._random = random.Random()

    def _work(self, work: Callable[[WorkingSet], T], *, fences: int = 1) -> T:
        """Does work on rows in one transaction. `fences` is how many it may need."""
        return self._database.transact(self._on_rows(work, fences))

    def _work_alone(self, work: Callable[[WorkingSet], T]) -> T:
        """Does work that makes one row and looks at no other."""
        return self._database.write_one(self._on_rows(work, 1))

    def _on_rows(
        self, work: Callable[[WorkingSet], T], fences: int
    ) -> Callable[[MongoTransaction], T]:
        def once(transaction: MongoTransaction) -> T:
            rows = WorkingSet(
                transaction, self._values, self._take_fences, self._ids, fence_block=fences
            )
            answer = work(rows)
            rows.send()
            return answer

        return once

    def _take_fences(self, count: int) -> int:
        """The first of so many fences. # I9

        They are taken after the transaction that wants them has begun, or after the task was seen
        that will have one: so they are greater than every fence that was seen.

        By majority, although what is written with them is too: a number that a failover takes back
        is given twice, and a worker that was stopped with it in hand could take a task under it
        when the other holder has lost its own. Then the fence of one would let the other in.
        """
        return self._database.take_numbers("fence", count)

    def _tasks(
        self, where: Document, sort: list[tuple[str, int]] | None = None, limit: int = 0
    ) -> list[Task]:
        found = self._database.find("task", where, sort=sort, limit=limit)
        return [self._documents.task_out(row) for row in found]


def no_task(task: TaskId) -> NotFound:
    return NotFound(f"there is no task {task}")


def no_call(call: CallId) -> NotFound:
    return NotFound(f"there is no call {call}")
