"""The parts of `afl.server.postgres_store`, on the database of the kernel's store.

    statements   the named SQL of `sql/`

`schema.sql` is what the migrations of this package add to the kernel's schema; `afl.app.migrating`
applies them with those of the other packages.
"""
