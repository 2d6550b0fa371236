"""How rows change, for every store that keeps them as rows: one machine, whatever is under it.

`rows` says what a store must be able to look up and put down; `transitions`, `commits`, `claims`
and `mending` are all that ever changes a row. The memory store gives them its maps, the MongoDB
store the documents of one transaction. (The PostgreSQL store has the same machine as functions of
the database, where the rows are.)
"""
