"""Suspended turns by the hundred thousand, in the shape in which the store itself leaves them.

One turn goes through the store's port until it waits for a tool; its rows are then copied inside
the database, each copy with ids, an agent and a time of its own. So there is no second place that
knows what a suspended turn looks like, and any of them goes on when it is answered.
"""

from __future__ import annotations

from collections.abc import Mapping

import psycopg
from psycopg import Connection

from afl.kernel.model import TaskId

_CHUNK = 20_000
#: Ids in the order of time, as the store's are: a time in front, chance behind.
_ID = (
    "(lpad(to_hex((extract(epoch from t.created_at) * 1000)::bigint + g / 100), 12, '0') || '7'"
    " || lpad(to_hex(g %% 100), 3, '0') || '8' || substr(md5('{salt}' || g), 1, 15))::uuid"
)
_COPIES = f"""
create temporary table copy on commit drop as
select g as n, t.id as template, k.id as called, c.id as called_by, t.lane as model,
       'agent-' || g as agent, {_ID.format(salt="turn")} as turn,
       {_ID.format(salt="callee")} as callee, {_ID.format(salt="call")} as call
from afl.task t
join afl.call c on c.caller = t.id
join afl.task k on k.id = c.callee,
     generate_series(%(first)s::bigint, %(last)s::bigint) as g
where t.id = %(template)s
"""
_LATER = "+ copy.n * interval '1 microsecond'"
#: What is different in each copy of a row; all other columns are copied.
_TURN = {
    "id": "copy.turn",
    "run": "copy.turn::text",
    "lane": "copy.agent",
    "last_fence": "-copy.n",
    "committed_fence": "-copy.n",
    "run_at": f"t.run_at {_LATER}",
    "created_at": f"t.created_at {_LATER}",
    "input": "replace(t.input::text, copy.model, copy.agent)::json",
}
_CALLEE = {
    "id": "copy.callee",
    "run": "copy.turn::text",
    "parent_call": "copy.call",
    "caller": "copy.turn",
    "run_at": f"t.run_at {_LATER}",
    "created_at": f"t.created_at {_LATER}",
}
_CALL = {
    "id": "copy.call",
    "run": "copy.turn::text",
    "caller": "copy.turn",
    "callee": "copy.callee",
}
_LANE = {"name": "copy.agent", "active": "copy.turn"}
_BOX = {"box": "copy.turn::text"}
#: Each table, how its template is found, and what is different in a copy.
_ROWS: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    ("task", "t.id = copy.template", _TURN),
    ("task", "t.id = copy.called", _CALLEE),
    ("call", "t.id = copy.called_by", _CALL),
    ("lane", "t.name = copy.model", _LANE),
    ("box_card", "t.box = copy.template::text", _BOX),
)
_COLUMNS = """
select column_name from information_schema.columns
where table_schema = 'afl' and table_name = %s and is_generated = 'NEVER' and is_identity = 'NO'
order by ordinal_position
"""


def copy_suspended(url: str, template: TaskId, count: int) -> None:
    """Puts so many copies of a suspended turn into its database."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set synchronous_commit to off")
        for first in range(1, count + 1, _CHUNK):
            last = min(first + _CHUNK - 1, count)
            given = {"first": first, "last": last, "template": template}
            with connection.transaction():
                connection.execute(_COPIES.encode(), given)
                for table, found, changed in _ROWS:
                    connection.execute(_insert(connection, table, found, changed).encode())


def _insert(
    connection: Connection[tuple[str, ...]], table: str, found: str, changed: Mapping[str, str]
) -> str:
    columns = [row[0] for row in connection.execute(_COLUMNS, [table])]
    values = [changed.get(column, f't."{column}"') for column in columns]
    names = ", ".join(f'"{column}"' for column in columns)
    return (
        f"insert into afl.{table} ({names}) select {', '.join(values)} from pg_temp.copy "
        f"join afl.{table} t on {found} order by copy.n"
    )
