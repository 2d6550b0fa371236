"""Work that people do, in memory."""

from __future__ import annotations

from afl.kernel.model import CallStatus, State, Task, TaskId
from afl.runtime.calls import PEOPLE
from afl.runtime.memory_tables import MemoryTables

_PAGE = 1000


class MemoryPeople(MemoryTables):
    """See `persistence.People` for what each method promises, but for the cost."""

    def human_tasks(
        self, group: str | None = None, after: TaskId | None = None, limit: int = 100
    ) -> list[Task]:
        found: list[Task] = []
        while len(found) < limit:
            page = self._kernel.find_tasks(state=State.READY, after=after, limit=_PAGE)
            found += [task for task in page if self._is_asked(task, group)]
            if len(page) < _PAGE:
                break
            after = page[-1].id
        return found[:limit]

    def _is_asked(self, task: Task, group: str | None) -> bool:
        if task.list != PEOPLE or task.parent_call is None:
            return False
        given = task.input if isinstance(task.input, dict) else {}
        call = self._kernel.get_call(task.parent_call)
        return (
            (group is None or given.get("group") == group)
            and call is not None
            and call.status is CallStatus.OPEN
        )
