"""The parts of `afl.logs.postgres_store`, on the database of the kernel's store.

    statements   the named SQL of `sql/`

`schema.sql` is what the migrations of this package add to the kernel's schema; `afl.app.migrating`
applies them with those of the other packages. Who appends locks spools, then streams, each in the
order of their ids.
"""
