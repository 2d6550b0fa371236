"""The parts of `afl.messaging.postgres_coordinator`, on the database of the kernel's store.

    mail         every operation of a mailbox, one round trip each; what blocks is not async here
    rows         rows to values, and values to parameters
    statements   the named SQL of `sql/`

What an operation does is a function of the database (`migrations/`), so that it is one transaction,
asked for in one round trip. `schema.sql` is what the migrations of this package add to the kernel's
schema; `afl.app.migrating` applies them with those of the other packages. The clock is that of the
database. Who changes several mailboxes goes through them in the order of their names.
"""
