"""A crew on MongoDB: every task is closed exactly once, and so is every effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from pymongo import InsertOne

from afl.kernel.model import TaskId
from afl.kernel.mongo.store import MongoStore
from afl.kernel.mongo.transaction import opened
from afl.kernel.port import Transaction
from tests.kernel.crew import THREADS, Crew, work_off

FLOWS = 150


def _mark(transaction: Transaction, tasks: Sequence[TaskId]) -> None:
    opened(transaction).write("mark", *(InsertOne({"name": task}) for task in tasks))


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_every_task_is_closed_exactly_once(url: str) -> None:
    with MongoStore.connect(url, max_size=THREADS) as store:
        database = store.database
        crew = Crew(store, _mark, lambda: database.find_one("task", {"alive": True}) is not None)
        work_off(crew, FLOWS)
        marks = Counter(row["name"] for row in database.find("mark", {}))
        ended = {row["_id"] for row in database.find("task", {"outcome": "success"}, fields={})}
        assert set(marks.values()) == {1}
        assert set(marks) >= ended
