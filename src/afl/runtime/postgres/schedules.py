"""Schedules, and what became of their fire times."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from afl.kernel.port import Transaction
from afl.kernel.postgres.rows import utc
from afl.kernel.postgres.transactions import opened
from afl.runtime.postgres.core import PostgresCore
from afl.runtime.postgres.schedule_rows import firing_of, pack_firing, pack_schedule, schedule_of
from afl.runtime.postgres.statements import hot
from afl.runtime.schedule import Due, Firing, Schedule

_WRITE_SCHEDULE, _WRITE_FIRING = hot("write_schedule"), hot("write_firing")
#: How many of its runs may still be going on, for all that is known of a schedule.
_MOST_OPEN = 100


class PostgresSchedules(PostgresCore):
    """See `persistence.Schedules` for what each method promises."""

    def write_schedule(self, transaction: Transaction, schedule: Schedule) -> None:
        opened(transaction).send(_WRITE_SCHEDULE, pack_schedule(schedule))

    def write_firings(self, transaction: Transaction, firings: Sequence[Firing]) -> None:
        for firing in firings:
            opened(transaction).send(_WRITE_FIRING, pack_firing(firing))

    def get_schedule(self, name: str) -> Schedule | None:
        row = self._row("get_schedule", {"name": name})
        return None if row is None else schedule_of(row)

    def find_schedules(
        self, *, owner: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[Schedule]:
        parameters = {"owner": owner, "after": after or "", "limit": limit}
        return [schedule_of(row) for row in self._rows("find_schedules", parameters)]

    def delete_schedule(self, name: str) -> bool:
        return self._row("delete_schedule", {"name": name}) is not None

    def take_due(self, hold: timedelta, limit: int) -> Due:
        rows = self._rows("take_due", {"hold": hold, "limit": limit})
        now, next_look, *_ = rows[0]
        taken = [schedule_of(row[2:]) for row in rows if row[2] is not None]
        return Due(utc(now), taken, None if next_look is None else utc(next_look))

    def get_firings(
        self, schedule: str, *, started: bool = False, limit: int = 100
    ) -> list[Firing]:
        statement = "get_started" if started else "get_firings"
        rows = self._rows(statement, {"schedule": schedule, "limit": limit})
        return [firing_of(row) for row in rows]

    def started_between(self, schedule: str, start: datetime, end: datetime) -> set[datetime]:
        parameters = {"schedule": schedule, "start": start, "end": end}
        return {utc(fire_at) for (fire_at,) in self._rows("started_between", parameters)}

    def open_runs(self, schedule: str) -> list[str]:
        rows = self._rows("open_runs", {"schedule": schedule, "limit": _MOST_OPEN})
        return [run for (run,) in rows]

    def forget_firings(self, older_than: timedelta) -> None:
        """Removes what became of fire times that long ago."""
        self._execute("forget_firings", {"older_than": older_than})
