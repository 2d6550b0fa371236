"""The reads on PostgreSQL: by the indexes that claims go by, each up to a cap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from psycopg import Cursor

from afl.kernel.model import State, Task, TaskId, WorkerId
from afl.kernel.postgres.database import Row
from afl.kernel.postgres.rows import TASK_COLUMNS, task_of, utc
from afl.kernel.postgres.store import PostgresStore
from afl.server.store_reads.port import FOR_NO_WORKER, INDEXED, Backlog, ListTotals

_FIRST = "00000000-0000-0000-0000-000000000000"
_NAMES = 20
_LEVELS = 2000
#: How many open runs, and how many streams of a run, are looked at for a mark.
_OPEN_RUNS = 500
_STREAMS = 100

_PLAN_SIMPLY = b"""
select set_config('jit', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true)
"""

_BACKLOGS = b"""
with level as (
    select c.list, c.short_name, c.priority from afl.claim_level c
    where c.list <> all(%(not)s::text[])
    order by c.list, c.short_name, c.priority limit %(levels)s::int
), now as (select afl.now() as at)
select l.list, l.short_name, coalesce(sum(r.ready), 0)::int, min(r.oldest),
       coalesce(sum(d.later), 0)::int,
       array_agg(n.names) filter (where n.names <> '')
from now cross join level l
cross join lateral (
    select count(*) as ready, min(x.run_at) as oldest from (
        select t.run_at from afl.task t
        where t.state = 'ready' and t.list = l.list and t.short_name = l.short_name
          and t.priority = l.priority and t.run_at <= now.at
        order by t.run_at limit %(cap)s::int) as x
) as r
cross join lateral (
    select count(*) as later from (
        select from afl.task t
        where t.state = 'ready' and t.list = l.list and t.short_name = l.short_name
          and t.priority = l.priority and t.run_at > now.at
        limit %(cap)s::int) as x
) as d
cross join lateral (
    select coalesce(string_agg(distinct x.name, ','), '') as names from (
        select t.name from afl.task t
        where t.state = 'ready' and t.list = l.list and t.short_name = l.short_name
          and t.priority = l.priority and t.run_at <= now.at and r.ready > 0
        order by t.run_at, t.id limit %(names)s::int) as x
) as n
group by l.list, l.short_name
having sum(r.ready) + sum(d.later) > 0
order by l.list, l.short_name
"""

_TOTALS = b"""
select x.list, count(*) filter (where x.what = 'running')::int,
       count(*) filter (where x.what = 'queued')::int,
       count(*) filter (where x.what = 'dead')::int
from (
    (select t.list, 'running' as what from afl.task t where t.state = 'running'
     limit %(cap)s::int)
    union all
    (select t.list, 'queued' from afl.task t where t.state = 'queued' limit %(cap)s::int)
    union all
    (select t.list, 'dead' from afl.task t
     where t.dead and not exists (select from afl.task r where r.redrives = t.id)
     limit %(cap)s::int)
) as x
group by x.list order by x.list
"""

_HELD = f"""
select {TASK_COLUMNS}
from unnest(%(workers)s::text[]) as w (id)
cross join lateral (
    select * from afl.task x where x.worker = w.id and x.state = 'running' limit %(each)s::int
) as t
order by t.id
""".encode()

_OLDEST = f"""
select {TASK_COLUMNS}
from afl.claim_level l
cross join lateral (
    select * from afl.task x
    where x.state = 'ready' and x.list = l.list and x.short_name = l.short_name
      and x.priority = l.priority and x.run_at <= afl.now()
    order by x.run_at, x.id limit %(limit)s::int
) as t
where l.list = %(list)s::text and l.short_name = %(name)s::text
order by t.run_at, t.id limit %(limit)s::int
""".encode()

# the state is no parameter: an index that has only these tasks serves
_IN_STATE = {
    state: f"""
select {TASK_COLUMNS} from afl.task t
where t.state = '{state.value}' and t.id > %(after)s::uuid
order by t.id limit %(limit)s::int
""".encode()
    for state in INDEXED
}

_RUNS_MARK = b"""
select (select r.id::text from afl.run r order by r.id desc limit 1),
       (select concat(r.finished_at, r.id) from afl.run r where r.finished_at is not null
        order by r.finished_at desc, r.id desc limit 1),
       (select concat(count(*), ':', count(*) filter (where x.pause_requested)) from (
            select r.pause_requested from afl.run r where r.state = 'created'
            order by r.id desc limit %(cap)s::int) as x),
       (select concat(count(*), ':', count(*) filter (where x.pause_requested)) from (
            select r.pause_requested from afl.run r where r.state = 'running'
            order by r.id desc limit %(cap)s::int) as x)
"""

_LOGS_MARK = b"""
select count(*), sum(x.next_seq), max(x.last_us), count(x.closed_us) from (
    select s.next_seq, s.last_us, s.closed_us from afl.log_stream s where s.run = %(run)s
    order by s.opened_us desc limit %(streams)s::int) as x
"""


class PostgresReads:
    """See `port.StoreReads` for what each method promises."""

    def __init__(self, kernel: PostgresStore) -> None:
        self._database = kernel.database

    def backlogs(self, cap: int) -> list[Backlog]:
        parameters = {
            "not": list(FOR_NO_WORKER),
            "levels": _LEVELS,
            "cap": cap,
            "names": _NAMES,
        }
        return [
            Backlog(
                list_,
                name,
                tuple(sorted({part for each in names or () for part in each.split(",")})),
                min(ready, cap),
                min(later, cap),
                None if oldest is None else utc(oldest),
            )
            # of all tenants, whoever asks: a tenant's own could not be counted up to a cap, since
            # what is skipped counts for nothing
            for list_, name, ready, oldest, later, names in self._database.run(
                _in_order(_BACKLOGS, parameters), transaction=True
            )
        ]

    def totals(self, cap: int) -> list[ListTotals]:
        return [ListTotals(*row) for row in self._database.rows(_TOTALS, {"cap": cap})]

    def held(self, workers: Sequence[WorkerId], each: int) -> Mapping[WorkerId, list[Task]]:
        found: dict[WorkerId, list[Task]] = {worker: [] for worker in workers}
        parameters = {"workers": list(workers), "each": each}
        for row in self._database.rows(_HELD, parameters):
            task = task_of(row)
            if task.worker is not None:
                found[task.worker].append(task)
        return found

    def oldest(self, list: str, short_name: str, limit: int) -> list[Task]:
        parameters = {"list": list, "name": short_name, "limit": limit}
        return [task_of(row) for row in self._database.read(_in_order(_OLDEST, parameters))]

    def in_state(self, state: State, after: TaskId | None, limit: int) -> list[Task]:
        parameters = {"after": after or _FIRST, "limit": limit}
        return [task_of(row) for row in self._database.rows(_IN_STATE[state], parameters)]

    def logs_mark(self, run: str) -> str:
        return str(self._database.row(_LOGS_MARK, {"run": run, "streams": _STREAMS}))

    def runs_mark(self) -> str:
        return str(self._database.row(_RUNS_MARK, {"cap": _OPEN_RUNS}))


def _in_order(
    statement: bytes, parameters: Mapping[str, object]
) -> Callable[[Cursor[Row]], list[Row]]:
    """Reads the rows of a statement that goes through an index in its order, up to a cap.

    The planner takes caps for large and levels for many: it would collect all that is ready, and
    compile what runs for a moment.
    """

    def work(cursor: Cursor[Row]) -> list[Row]:
        cursor.execute(_PLAN_SIMPLY)
        return cursor.execute(statement, parameters).fetchall()

    return work
