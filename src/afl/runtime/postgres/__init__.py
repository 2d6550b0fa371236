"""The parts of `afl.runtime.postgres_store`, on the database of the kernel's PostgreSQL store.

    runs, steps      one part of `persistence.Runs` each
    shelves          programs, events from outside, memos
    rows             rows to values, and values to parameters
    statements       the named SQL of `sql/`
    migrate          the kernel's migrations and those of this package, as one history

`schema.sql` is what the migrations of this package add to the kernel's schema. Times are those of
the database's clock.
"""
