"""Finished tasks by the million, in the shape in which the store itself leaves them.

One task of each name goes the whole way through the store's port; its row and its closed event are
then copied inside the database, each copy with its own id, run, fence and times. So there is no
second place that knows what a finished row looks like.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import psycopg
from psycopg import Connection

from afl.kernel.model import ClaimRequest, Close, Commit, Outcome, TaskSpec, WorkerId, WorkerSpec
from afl.kernel.postgres.store import PostgresStore

#: Among them the name that is claimed while the others only fill the tables.
NAMES = ("billing.Pay", "billing.Refund", "mail.Send", "docs.Read", "docs.Count")
_WORKER = WorkerId("finisher")
_CHUNK = 250_000
#: How long ago a task was: the first of them a month, the others 20 milliseconds apart.
_AGE = "(interval '30 days' - copy.n * interval '20 milliseconds')"

#: What is different in each copy of a task, and of an event; all other columns are copied.
_TASK = {
    "id": "copy.id",
    "run": "copy.id::text",
    "last_fence": "-copy.n",
    "committed_fence": "-copy.n",
    "run_at": f"t.run_at - {_AGE}",
    "created_at": f"t.created_at - {_AGE}",
    "closed_at": f"t.closed_at - {_AGE}",
}
_EVENT = {
    "id": "nextval('afl.outbox_number')",
    "task": "copy.id",
    "run": "copy.id::text",
    "created_at": f"t.created_at - {_AGE}",
}
#: Ids in the order of time, as the store's are: a time in front, chance behind. Fences count down
#: from below zero, where the store has none.
_COPIES = b"""
create temporary table copy on commit drop as
select g as n, g %% %(names)s as at,
       (lpad(to_hex(start.ms + g * 20), 12, '0') || '7' || substr(md5(g::text), 1, 3)
        || '8' || substr(md5(g::text), 4, 15))::uuid as id
from (select (extract(epoch from now() - interval '30 days') * 1000)::bigint as ms) as start,
     generate_series(%(first)s::bigint, %(last)s::bigint) as g
"""
_COLUMNS = """
select column_name from information_schema.columns
where table_schema = 'afl' and table_name = %s and is_generated = 'NEVER' and is_identity = 'NO'
order by ordinal_position
"""
_INDEXES = """
select indexname, indexdef from pg_indexes
where schemaname = 'afl' and tablename = any(%s)
  and not exists (select from pg_constraint where conindid = ('afl.' || indexname)::regclass)
"""
_TABLES = ["task", "outbox"]


def finish(url: str, count: int) -> None:
    """Puts so many finished tasks, with their events, into a database with the schema."""
    templates = _templates(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set synchronous_commit to off")
        # many rows go in faster when the indexes are made afterwards
        indexes = connection.execute(_INDEXES, [_TABLES]).fetchall()
        for name, _ in indexes:
            connection.execute(f"drop index afl.{name}".encode())
        for first in range(1, count + 1, _CHUNK):
            last = min(first + _CHUNK - 1, count)
            with connection.transaction():
                _copy(connection, templates, first, last)
        for _, definition in indexes:
            connection.execute(definition.encode())
    settle(url)


def settle(url: str) -> None:
    """Cleans up and counts, as autovacuum does sooner or later."""
    with psycopg.connect(url, autocommit=True) as connection:
        for table in _TABLES:
            connection.execute(f"vacuum (analyze) afl.{table}".encode())


def _templates(url: str) -> list[str]:
    """The ids of finished tasks, one of each name."""
    with PostgresStore.connect(url, max_size=1) as store:
        store.register(WorkerSpec(_WORKER, "finisher", handlers=NAMES, lease=timedelta(hours=1)))
        store.enqueue([TaskSpec("event", name, input={"n": 42, "path": "in/1"}) for name in NAMES])
        claims = store.claim(ClaimRequest(_WORKER, NAMES, n=len(NAMES)))
        done = Close(Outcome.SUCCESS, {"ok": True})
        store.commit([Commit(claim.fence, done) for claim in claims])
        # what was read has a number; nearly all events have been read
        store.read_outbox()
        return [claim.task.id for claim in claims]


def _copy(
    connection: Connection[tuple[str, ...]], templates: list[str], first: int, last: int
) -> None:
    connection.execute(_COPIES, {"names": len(templates), "first": first, "last": last})
    for table, key, changed in (("task", "id", _TASK), ("outbox", "task", _EVENT)):
        insert = _insert(connection, table, key, changed)
        connection.execute(insert.encode(), [templates])


def _insert(
    connection: Connection[tuple[str, ...]], table: str, key: str, changed: Mapping[str, str]
) -> str:
    columns = [row[0] for row in connection.execute(_COLUMNS, [table])]
    values = [changed.get(column, f't."{column}"') for column in columns]
    names = ", ".join(f'"{column}"' for column in columns)
    return (
        f"insert into afl.{table} ({names}) select {', '.join(values)} from pg_temp.copy "
        f"join afl.{table} t on t.{key} = (%s::uuid[])[copy.at + 1] order by copy.id"
    )
