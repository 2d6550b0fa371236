"""What every role of the PostgreSQL store shares."""

from __future__ import annotations

from collections.abc import Mapping

from afl.base.ids import IdSource
from afl.kernel.errors import NotFound
from afl.kernel.model import CallId, TaskId
from afl.kernel.postgres.database import Database, Row
from afl.kernel.postgres.levels import Levels
from afl.kernel.postgres.rows import is_id
from afl.kernel.postgres.statements import SQL


class Core:
    """The database, what it is known to have, and a source of ids."""

    def __init__(self, database: Database, ids: IdSource) -> None:
        self._database = database
        self._levels = Levels(database)
        self._ids = ids

    def _rows(self, statement: str, parameters: Mapping[str, object]) -> list[Row]:
        return self._database.rows(SQL[statement], parameters)

    def _row(self, statement: str, parameters: Mapping[str, object]) -> Row | None:
        return self._database.row(SQL[statement], parameters)


def known_task(task: TaskId) -> TaskId:
    """The id, if it can be one."""
    if not is_id(task):
        raise NotFound(f"there is no task {task}")
    return task


def known_call(call: CallId) -> CallId:
    """The id, if it can be one."""
    if not is_id(call):
        raise NotFound(f"there is no call {call}")
    return call
