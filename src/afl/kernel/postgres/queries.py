"""Reading, and what is done with finished tasks: dead letters and retention."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from psycopg import Cursor

from afl.kernel import rules
from afl.kernel.errors import BadRequest, NotFound
from afl.kernel.model import (
    Call,
    CallId,
    Fence,
    Loss,
    Outcome,
    Reason,
    RunId,
    Standing,
    State,
    Task,
    TaskId,
    WorkerId,
)
from afl.kernel.postgres.core import Core, known_task
from afl.kernel.postgres.database import Row
from afl.kernel.postgres.levels import pack_levels
from afl.kernel.postgres.packing import pack_specs
from afl.kernel.postgres.rows import call_of, is_id, task_of, utc
from afl.kernel.postgres.statements import SQL

_FIRST = "00000000-0000-0000-0000-000000000000"
_CALL_WIDTH = 10


class PostgresQueries(Core):
    """See `port.Queries` for what each method promises."""

    def get_task(self, task: TaskId) -> Task | None:
        row = self._row("get_task", {"task": task}) if is_id(task) else None
        return None if row is None else task_of(row)

    def get_call(self, call: CallId) -> Call | None:
        row = self._row("get_call", {"call": call}) if is_id(call) else None
        return None if row is None else call_of(row)

    def calls_of(self, caller: TaskId) -> list[Call]:
        rows = self._rows("calls_of", {"task": caller}) if is_id(caller) else []
        return [call_of(row) for row in rows]

    def find_call(self, caller: TaskId, key: str) -> Call | None:
        row = self._row("find_call", {"task": caller, "key": key}) if is_id(caller) else None
        return None if row is None else call_of(row)

    def find_calls(self, caller: TaskId, keys: Sequence[str]) -> list[Call]:
        if not is_id(caller) or not keys:
            return []
        return [call_of(row) for row in self._rows("find_calls", {"task": caller, "keys": [*keys]})]

    def find_tasks(
        self,
        *,
        run: RunId | None = None,
        state: State | None = None,
        outcome: Outcome | None = None,
        dead: bool | None = None,
        after: TaskId | None = None,
        limit: int = 100,
    ) -> list[Task]:
        parameters = {
            "run": run,
            "root": run if run is not None and is_id(run) else None,
            "state": None if state is None else state.value,
            "outcome": None if outcome is None else outcome.value,
            "dead": dead,
            "after": after or _FIRST,
            "limit": limit,
        }
        statement = "find_tasks" if run is None else "find_tasks_of_run"
        return [task_of(row) for row in self._rows(statement, parameters)]

    def why(self, task: TaskId) -> Reason | None:
        row = self._row("why", {"task": known_task(task)})
        if row is None:
            raise NotFound(f"there is no task {task}")
        return _standing(row).reason

    def standing(self, tasks: Sequence[TaskId]) -> list[Standing]:
        known = [task for task in tasks if is_id(task)]
        rows = self._rows("standing", {"tasks": known}) if known else []
        return [_standing(row) for row in rows]

    def losses_of(self, tasks: Sequence[TaskId]) -> list[Loss]:
        known = [task for task in tasks if is_id(task)]
        rows = self._rows("losses_of", {"tasks": known}) if known else []
        return [
            Loss(TaskId(task), WorkerId(worker), Fence(fence), utc(at))
            for task, worker, fence, at in rows
        ]


def _standing(row: Row) -> Standing:
    """A task out of a row of `why`."""
    now, holder, served, *columns = row
    task, call = task_of(columns, _CALL_WIDTH), columns[:_CALL_WIDTH]
    first_open = None if call[0] is None else call_of(call)
    reason = rules.present_reason(
        task, now=utc(now), served=served, holder=holder, first_open=first_open
    )
    return Standing(task, reason, first_open)


class PostgresDeadLetters(Core):
    """See `port.DeadLetters` for what each method promises."""

    def dead_letters(self, limit: int = 100, after: TaskId | None = None) -> list[Task]:
        rows = self._rows("dead_letters", {"limit": limit, "after": after or _FIRST})
        return [task_of(row) for row in rows]

    def redrive(self, task: TaskId) -> Task:
        parameters = {"task": known_task(task)}

        def work(cursor: Cursor[Row]) -> Task:
            # the lock keeps two that redrive the same letter apart
            row = cursor.execute(SQL["lock_task"], parameters).fetchone()
            if row is None:
                raise NotFound(f"there is no task {task}")
            dead = task_of(row)
            if not dead.dead:
                raise BadRequest(f"task {task} was not given up, so there is nothing to redrive")
            row = cursor.execute(SQL["find_redrive"], parameters).fetchone()
            if row is not None:
                return task_of(row)
            spec = rules.redrive_spec(dead)
            level = pack_levels([(spec.list, spec.name, spec.priority)])
            cursor.execute(SQL["register_levels"], level)
            again = pack_specs([spec], self._ids, redrives=task)
            row = cursor.execute(SQL["enqueue"], again).fetchone()
            assert row is not None
            return task_of(row, 1)

        return self._database.run(work, transaction=True)


class PostgresRetention(Core):
    """See `port.Retention` for what each method promises."""

    def rotate(self, older_than: timedelta, limit: int = 1000) -> int:
        row = self._row("rotate", {"older_than": older_than, "limit": limit})
        assert row is not None
        return int(row[0])
