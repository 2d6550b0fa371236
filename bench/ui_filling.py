"""Runs of many thousand steps, in the shape in which the engine itself leaves them.

A small run goes the whole way through the engine; its rows are then copied inside the database, so
often that there are as many iterations as wanted, each copy with a number, ids and times of its
own. So there is no second place that knows what a run looks like. A copy with as many iterations as
the small run has must be equal to it, which is checked before anything is measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import psycopg
from psycopg import Connection

from afl.app.client import Client
from afl.app.services import Services
from afl.base.system import SystemIds
from afl.kernel.model import Close, Json, Task
from afl.runtime.driver import Driver, Work
from afl.runtime.working.outcomes import close_of_error, close_of_result

FLOW = """\
/** As many charges as there are numbers. */
namespace bench {
  event facet List(count: Int) => (numbers: [Int])
  event facet Charge(n: Int) => (receipt: String)

  workflow Many(count: Int) => () andThen {
    listed = List(count = $.count)
  } andThen foreach n in listed.numbers {
    charged = Charge(n = $.n)
  }
}
"""
#: How many iterations the run has that is copied; one of them fails.
SMALL = 100
_BAD = 7
_CHUNK = 10_000
_LATER = "+ copy.n * interval '1 millisecond'"
_COPIES = f"""
create temporary table copy on commit drop as
select g as n, %(run)s::uuid as run, '1/' || g || '/' as path, '1/' || g %% {SMALL} || '/' as was,
       c.id as call_was, c.callee as task_was,
       gen_random_uuid() as call, gen_random_uuid() as task
from generate_series(%(first)s::bigint, %(last)s::bigint) as g
join afl.call c on c.caller = %(template)s
    and c.key = '1/' || g %% {SMALL} || '/charged'
"""
#: What a run, its task and the steps above the iterations have of their own.
_RUN = {
    "id": "%(run)s",
    "inputs": "%(inputs)s::json",
    "finished_at": "t.finished_at + %(count)s * interval '1 millisecond'",
}
_FLOW_TASK = {
    "id": "%(run)s",
    "run": "%(run)s::text",
    "last_fence": "-nextval('bench_fence')",
    "committed_fence": "-nextval('bench_fence')",
}
_ABOVE = {
    "run": "%(run)s",
    "frame": f"replace(t.frame::text, ':{SMALL},', ':' || %(count)s || ',')::json",
    "params": "case when t.params is not null then %(inputs)s::json end",
    "returns": "case when t.path = '0/listed' then %(numbers)s::json else t.returns end",
    "ended_at": "t.ended_at + %(count)s * interval '1 millisecond'",
}
#: What an iteration, its step, call and task have of their own.
_ITERATION = {
    "run": "copy.run",
    "path": "rtrim(copy.path || substr(t.path || '/', length(copy.was) + 1), '/')",
    "frame": "replace(t.frame::text, copy.was, copy.path)::json",
    "error": "replace(t.error::text, copy.was, copy.path)::json",
    "params": "case when t.params is not null then json_build_object('n', copy.n) end",
    "created_at": f"t.created_at {_LATER}",
    "changed_at": f"t.changed_at {_LATER}",
    "ended_at": f"t.ended_at {_LATER}",
}
_CALL = {
    "id": "copy.call",
    "run": "copy.run::text",
    "caller": "copy.run",
    "key": "copy.path || 'charged'",
    "callee": "copy.task",
}
_TASK = {
    "id": "copy.task",
    "run": "copy.run::text",
    "parent_call": "copy.call",
    "caller": "copy.run",
    "last_fence": "-nextval('bench_fence')",
    "committed_fence": "-nextval('bench_fence')",
    "input": "replace(t.input::text, copy.was, copy.path)::json",
    "created_at": f"t.created_at {_LATER}",
    "closed_at": f"t.closed_at {_LATER}",
}
_COLUMNS = """
select column_name from information_schema.columns
where table_schema = 'afl' and table_name = %s and is_generated = 'NEVER' and is_identity = 'NO'
order by ordinal_position
"""
_TALLY = """
insert into afl.step_tally (run, statement_id, facet_name, object_type, state, steps)
select s.run, s.statement_id, s.facet_name, s.object_type, s.state, count(*)
from afl.step s where s.run = %s
group by s.run, s.statement_id, s.facet_name, s.object_type, s.state
"""
#: What two runs of the same size must have in common.
_STEPS = """
select path, object_type, statement_id, facet_name, state, skipped_because, yields_to,
       frame::jsonb, error::jsonb, params::jsonb, returns::jsonb
from afl.step where run = %s order by path
"""
_KEPT = """
select statement_id, facet_name, object_type, state, steps from afl.step_tally
where run = %s and steps <> 0 order by 1, 2, 3, 4
"""


def execute_small(services: Services) -> str:
    """A run of a hundred iterations that the engine has brought to its end; its id."""
    client = Client(services=services)
    client.deploy(FLOW)
    run = client.submit("bench.Many", {"count": SMALL})
    Driver(services.persistence, _find, SystemIds()).drive()
    if services.operations.get(run.id).finished_at is None:
        raise RuntimeError("the small run has not ended")
    return run.id


def _find(task: Task) -> Work:
    def work(task: Task) -> Close:
        assert isinstance(task.input, dict)
        params = task.input["params"]
        assert isinstance(params, dict)
        if task.short_name == "List":
            numbers: Json = list(range(SMALL))
            return close_of_result(task.name, {"numbers": numbers})
        if params["n"] == _BAD:
            return close_of_error(task, ValueError("the card was declined"))
        return close_of_result(task.name, {"receipt": "paid"})

    return work


def copy_run(url: str, template: str, count: int) -> str:
    """Puts a run like the small one with so many iterations into its database; its id."""
    run = SystemIds().new_id()
    numbers = '{"numbers":[' + ",".join(map(str, range(count))) + "]}"
    given = {
        "run": UUID(run),
        "template": UUID(template),
        "count": count,
        "inputs": f'{{"count":{count}}}',
        "numbers": numbers,
    }
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set synchronous_commit to off")
        connection.execute("create sequence if not exists bench_fence")
        with connection.transaction():
            _copy(connection, "run", "where t.id = %(template)s", _RUN, given)
            _copy(connection, "task", "where t.id = %(template)s", _FLOW_TASK, given)
            above = "where t.run = %(template)s and t.path not like '1/%%'"
            _copy(connection, "step", above, _ABOVE, given)
        for first in range(0, count, _CHUNK):
            last = min(first + _CHUNK, count) - 1
            with connection.transaction():
                connection.execute(_COPIES.encode(), {**given, "first": first, "last": last})
                steps = "join copy on t.run = %(template)s and t.path || '/' like copy.was || '%%'"
                _copy(connection, "step", steps, _ITERATION, given)
                _copy(connection, "call", "join copy on t.id = copy.call_was", _CALL, given)
                _copy(connection, "task", "join copy on t.id = copy.task_was", _TASK, given)
        connection.execute(_TALLY, [UUID(run)])
        connection.execute("vacuum analyze afl.step")
    return run


def _copy(
    connection: Connection[tuple[object, ...]],
    table: str,
    source: str,
    changed: Mapping[str, str],
    given: Mapping[str, object],
) -> None:
    names = [str(name) for (name,) in connection.execute(_COLUMNS, [table])]
    values = ", ".join(changed.get(name, f't."{name}"') for name in names)
    columns = ", ".join(f'"{name}"' for name in names)
    statement = f"insert into afl.{table} ({columns}) select {values} from afl.{table} t {source}"
    connection.execute(statement.encode(), given)


def check_copy(url: str, template: str) -> None:
    """
    Raises:
        RuntimeError: a copy of the size of the small run is not what the engine has made.
    """
    copied = copy_run(url, template, SMALL)
    with psycopg.connect(url) as connection:
        for what, query in (("steps", _STEPS), ("tallies", _KEPT)):
            made = connection.execute(query, [UUID(template)]).fetchall()
            same = connection.execute(query, [UUID(copied)]).fetchall()
            if made != same:
                odd = next(
                    (pair for pair in zip(made, same, strict=False) if pair[0] != pair[1]), ""
                )
                raise RuntimeError(f"the {what} of a copied run are not those of a real one: {odd}")
