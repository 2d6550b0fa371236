"""Work that people do."""

from __future__ import annotations

from afl.kernel.model import Task, TaskId
from afl.kernel.postgres.rows import is_id, task_of
from afl.runtime.postgres.core import PostgresCore

_FIRST = "00000000-0000-0000-0000-000000000000"


class PostgresPeople(PostgresCore):
    """See `persistence.People` for what each method promises."""

    def human_tasks(
        self, group: str | None = None, after: TaskId | None = None, limit: int = 100
    ) -> list[Task]:
        start = after if after is not None and is_id(after) else _FIRST
        rows = self._rows("human_tasks", {"group": group, "after": start, "limit": limit})
        return [task_of(row) for row in rows]
