"""Work that people do."""

from __future__ import annotations

from afl.kernel.model import Task, TaskId
from afl.kernel.mongo.rows import RowDocuments
from afl.runtime.calls import PEOPLE
from afl.runtime.mongo.core import MongoCore

_PAGE = 500


class MongoPeople(MongoCore):
    """See `persistence.People` for what each method promises."""

    def human_tasks(
        self, group: str | None = None, after: TaskId | None = None, limit: int = 100
    ) -> list[Task]:
        found: list[Task] = []
        last = after or ""
        size = limit if group is None else _PAGE
        while len(found) < limit:
            page = self._asked_after(last, size)
            found += [task for task in self._waited_for(page) if _is_for(task, group)]
            if len(page) < size:
                break
            last = page[-1].id
        return found[:limit]

    def _asked_after(self, last: str, limit: int) -> list[Task]:
        asked = {"list": PEOPLE, "state": "ready", "_id": {"$gt": last}}
        rows = self._database.find("task", asked, sort=[("_id", 1)], limit=limit)
        documents = RowDocuments(self._values)
        return [documents.task_out(row) for row in rows]

    def _waited_for(self, tasks: list[Task]) -> list[Task]:
        """Those of the tasks whose calls are open."""
        calls = [task.parent_call for task in tasks if task.parent_call is not None]
        waiting = self._database.find(
            "call", {"_id": {"$in": calls}, "status": "open"}, fields={"_id": 1}
        )
        open_calls = {row["_id"] for row in waiting}
        return [task for task in tasks if task.parent_call in open_calls]


def _is_for(task: Task, group: str | None) -> bool:
    given = task.input if isinstance(task.input, dict) else {}
    return group is None or given.get("group") == group
