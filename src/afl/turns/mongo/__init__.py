"""The parts of `afl.turns.mongo_store`, on the database of the kernel's MongoDB store.

    budgets          what may be spent, and what is reserved
    waits            who waits for room
    shelves          the roster of agents, the accounts, pins of MCP tools
    documents        documents to values, and values to documents

`migrations/` has what this package adds to the kernel's schema. Times are those of the database's
clock. Money is a decimal number of the database, with ten places: a token may cost less than a
millionth of a dollar.
"""
