"""The parts of `afl.turns.postgres_store`, on the database of the kernel's PostgreSQL store.

    budgets          what may be spent, what is reserved, who waits for room
    shelves          the roster of agents, the accounts, pins of MCP tools
    rows             rows to values, and values to parameters
    statements       the named SQL of `sql/`

`schema.sql` is what the migrations of this package add to the kernel's schema; `afl.app.migrating`
applies them with those of the other packages. Times are those of the database's clock.
"""
