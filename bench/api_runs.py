"""Finished runs by the million, in the shape in which the store leaves them, with all that people
filter by: workflows that run often and seldom, states, labels, keys, errors, tenants, callers.

They are made inside the database, each with an id that tells its time, a month's worth of them; and
a few hundred that are still under way. The indexes are made afterwards, which is faster.
"""

from __future__ import annotations

import psycopg

#: Beside the finished ones.
LIVE = 500
DAYS = 30
_CHUNK = 250_000
_TABLES = ["run", "step_tally"]
_INDEXES = """
select indexname, indexdef from pg_indexes
where schemaname = 'afl' and tablename = any(%s)
  and not exists (select from pg_constraint where conindid = ('afl.' || indexname)::regclass)
"""
#: `n` counts the runs, `ms` is the time of each; the rest is chance that is the same every time.
_COPIES = b"""
create temporary table copy on commit drop as
select g as n,
       to_timestamp(ms / 1000.0) as at,
       (lpad(to_hex(ms), 12, '0') || '7' || substr(md5(g::text), 1, 3)
        || '8' || substr(md5(g::text), 4, 15))::uuid as id,
       ('x' || substr(md5('a' || g), 1, 7))::bit(28)::int %% 1000 as a,
       ('x' || substr(md5('b' || g), 1, 7))::bit(28)::int %% 1000 as b,
       g > %(count)s::bigint as live
from generate_series(%(first)s::bigint, %(last)s::bigint) as g
cross join lateral (
    select (extract(epoch from now()) * 1000
            - (%(count)s + %(live)s - g) * %(days)s * 86400000.0 / %(count)s)::bigint as ms) as t
"""
_RUNS = b"""
insert into afl.run (
    id, program, workflow, inputs, state, outputs, error, labels, key, priority, tenant, parent,
    parent_path, pause_requested, created_at, finished_at)
select c.id, 'program-' || c.a % 7, w.name,
       json_build_object('order', c.n, 'path', 'in/part-' || lpad(c.n::text, 9, '0')),
       s.state, case when s.state = 'completed' then json_build_object('total', c.a) end,
       case when s.state in ('failed', 'canceled') then json_build_object(
           'type', 'Failed', 'step', '0/pay', 'message', case c.a % 4
               when 0 then 'the card of customer ' || c.n % 5000 || ' was refused by the bank'
               when 1 then 'connection to ledger-' || c.b % 50 || ' timed out after 30 s'
               when 2 then 'No space left on device: /data/' || c.n
               else 'Expected a number, found ' || md5(c.n::text) end) end,
       case when c.b < 50 then '{}'::jsonb else jsonb_build_object(
           'env', case when c.b < 750 then 'prod' when c.b < 950 then 'staging' else 'test' end,
           'team', 'team-' || c.a % 8, 'customer', 'c' || c.n % 5000) end,
       case when c.n % 2 = 0 then 'order-' || c.n end, 0,
       case when c.b < 900 then 'default' when c.b < 999 then 'acme' else 'small' end,
       -- of ten runs one after the other, the first has called the last four
       case when c.n % 10 > 5 then p.id end, case when c.n % 10 > 5 then '0/call' end,
       c.live and c.n % 10 = 0, c.at, case when not c.live then c.at + interval '90 s' end
from pg_temp.copy c
cross join lateral (
    select case when c.a < 500 then 'shop.Order' when c.a < 800 then 'shop.Refund'
                when c.a < 990 then 'jobs.Job' || c.a % 20
                else 'seldom.Audit' || c.a % 3 end as name) as w
cross join lateral (
    select case when c.live then 'running' when c.b % 100 < 92 then 'completed'
                when c.b % 100 < 98 then 'failed' else 'canceled' end as state) as s
left join pg_temp.copy p on p.n = c.n - c.n % 10
order by c.id
"""
_TALLIES = b"""
insert into afl.step_tally (run, statement_id, facet_name, object_type, state, steps)
select c.id, v.statement, v.facet, v.type, 'state.statement.Complete', 1 + c.a % 9
from pg_temp.copy c
cross join (values ('shop.Order', '', 'Workflow'), ('shop.Order/0', '', 'AndThen'),
                   ('shop.Order/0/pay', 'shop.Pay', 'VariableAssignment'))
    as v (statement, facet, type)
order by c.id
"""


def seed(url: str, count: int) -> None:
    """Puts so many finished runs, and the living, into a database with the schema."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set synchronous_commit to off")
        indexes = connection.execute(_INDEXES, [_TABLES]).fetchall()
        for name, _ in indexes:
            connection.execute(f"drop index afl.{name}".encode())
        for first in range(1, count + LIVE + 1, _CHUNK):
            last = min(first + _CHUNK - 1, count + LIVE)
            with connection.transaction():
                asked = {"first": first, "last": last, "count": count, "live": LIVE, "days": DAYS}
                connection.execute(_COPIES, asked)
                connection.execute(b"analyze pg_temp.copy")
                connection.execute(_RUNS)
                connection.execute(_TALLIES)
        for _, definition in indexes:
            connection.execute(definition.encode())
        for table in _TABLES:
            connection.execute(f"vacuum (analyze) afl.{table}".encode())
        # nobody who lists them should have to write them to the disk
        connection.execute(b"checkpoint")
