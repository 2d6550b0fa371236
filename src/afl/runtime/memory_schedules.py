"""Schedules in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count, islice

from afl.kernel.errors import Fenced
from afl.kernel.memory.tables import opened
from afl.kernel.memory.transaction import MemoryTransaction, Tables, TablesView
from afl.kernel.model import State, TaskId
from afl.kernel.port import Transaction
from afl.runtime.memory_tables import MemoryTables, map_out
from afl.runtime.run_values import map_in
from afl.runtime.schedule import Due, Firing, Schedule

_SCHEDULES = "schedule"
#: How many of its runs may still be going on, for all that is known of a schedule.
MOST_OPEN = 100
#: Firings in the order in which they were noted.
_numbers = count()


class MemorySchedules(MemoryTables):
    """See `persistence.Schedules` for what each method promises."""

    def write_schedule(self, transaction: Transaction, schedule: Schedule) -> None:
        schedules = opened(transaction).tables[_SCHEDULES]
        found = schedules.get(schedule.name)
        if (0 if found is None else found.version) != schedule.version:
            raise Fenced(f"the schedule {schedule.name} was changed meanwhile")
        now = opened(transaction).now
        # one that is made anew under an old name has no version that the old one had
        version = int(now.timestamp() * 1_000_000) if found is None else found.version + 1
        schedules[schedule.name] = replace(
            schedule,
            inputs=map_in(schedule.inputs, "the inputs"),
            version=version,
            created_at=now if found is None else found.created_at,
        )

    def write_firings(self, transaction: Transaction, firings: Sequence[Firing]) -> None:
        now = opened(transaction).now
        for firing in firings:
            rows = opened(transaction).tables[_firings(firing.schedule)]
            if firing.run is None or not _started(rows.values(), firing.fire_at):
                rows[f"{next(_numbers):016}"] = replace(firing, at=now)

    def get_schedule(self, name: str) -> Schedule | None:
        found = self._read(lambda tables: tables[_SCHEDULES].get(name))
        return None if found is None else _out(found)

    def find_schedules(
        self, *, owner: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[Schedule]:
        def work(tables: TablesView) -> list[Schedule]:
            rows = tables[_SCHEDULES]
            sorted_ = (rows[name] for name in sorted(rows) if after is None or name > after)
            fitting = (each for each in sorted_ if owner is None or each.owner == owner)
            return [_out(each) for each in islice(fitting, limit)]

        return self._read(work)

    def delete_schedule(self, name: str) -> bool:
        def work(transaction: MemoryTransaction) -> bool:
            tables = transaction.tables
            tables.drop(_firings(name))
            return tables[_SCHEDULES].pop(name, None) is not None

        return self._write(work)

    def take_due(self, hold: timedelta, limit: int) -> Due:
        def work(transaction: MemoryTransaction) -> Due:
            now, rows = transaction.now, transaction.tables[_SCHEDULES]
            looks = sorted(
                (each.look_at, name) for name, each in rows.items() if each.look_at is not None
            )
            taken = [name for look_at, name in looks if look_at <= now][:limit]
            for name in taken:
                rows[name] = replace(rows[name], look_at=now + hold)
            later = next((look_at for look_at, _ in looks if look_at > now), None)
            return Due(now, [_out(rows[name]) for name in taken], later)

        return self._write(work)

    def get_firings(
        self, schedule: str, *, started: bool = False, limit: int = 100
    ) -> list[Firing]:
        def work(tables: TablesView) -> list[Firing]:
            rows = tables[_firings(schedule)]
            newest = (rows[number] for number in sorted(rows, reverse=True))
            return list(islice((each for each in newest if each.run or not started), limit))

        return self._read(work)

    def started_between(self, schedule: str, start: datetime, end: datetime) -> set[datetime]:
        def work(tables: TablesView) -> set[datetime]:
            rows = tables[_firings(schedule)].values()
            return {each.fire_at for each in rows if each.run and start <= each.fire_at <= end}

        return self._read(work)

    def open_runs(self, schedule: str) -> list[str]:
        runs = [each.run for each in self.get_firings(schedule, started=True, limit=MOST_OPEN)]
        tasks = {run: self._kernel.get_task(TaskId(run)) for run in runs if run is not None}
        return [run for run, task in tasks.items() if task and task.state is not State.CLOSED]


def forget_firings(tables: Tables, before: datetime) -> None:
    """Removes what became of fire times before then."""
    for name in tables[_SCHEDULES]:
        rows = tables[_firings(name)]
        for number, firing in list(rows.items()):
            if firing.at <= before:
                del rows[number]


def _started(firings: Iterable[Firing], fire_at: datetime) -> bool:
    return any(each.run is not None and each.fire_at == fire_at for each in firings)


def _out(schedule: Schedule) -> Schedule:
    return replace(schedule, inputs=map_out(schedule.inputs))


def _firings(schedule: str) -> str:
    return f"firing:{schedule}"
