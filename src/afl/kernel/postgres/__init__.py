"""The kernel's store on PostgreSQL: `PostgresStore`, and `migrate` for its schema.

The state machine is written in SQL functions (`migrations/`), so that each transaction of the port
is one round trip and takes its row locks in one order: own tasks and their callers, the deeper
first; calls; lanes by name; the next task of a lane. The Python here only packs requests, unpacks
rows and translates errors. `sql/` has the named statements, `schema.sql` the whole schema as the
migrations leave it.

The database's clock is the only clock, the isolation level is READ COMMITTED, and no session
state is used, so a connection pooler in transaction mode may stand in between.

Modules:
    store       `PostgresStore`, put together from the roles below
    tasks       enqueue, claim, renew, commit, reply, stop;  sweeping  what time made wrong
    plain       the short ways of enqueue and commit, for tasks that nobody waits for
    stepping    the short way of steps of flows;  births  new callees on it
    queries, cards, workers, outbox, locks, retention, dead_letters   one role of the port each
    database    connections, transactions, repeated tries, errors;  pooling  connections at hand
    walls       what may be read for a tenant
    rows        rows to values;  packing  values to parameters;  statements  the named SQL
    migrate     numbered migrations, their checksums, what is pending
"""
