"""The kernel's store on MongoDB: a replica set, with transactions.

`store.MongoStore` is the port. A transaction reads the documents that it needs into a
`working_set`, where `afl.kernel.machine` changes them as it does in memory, and writes what has
changed when it ends. Snapshots let two transactions decide by what the other one changes; so a
document that a decision depends on is always written with it: the caller of a call that is
answered, the lane that is asked for, the worker whose task is taken away.

Claims are not transactions: each task is taken by itself, by whoever is first, and nobody waits.
"""
