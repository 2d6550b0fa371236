"""Mailboxes: agents talk, are found, and are protected from each other.

`models` has what is sent, `coordinator` the promises of a mailbox, `registry` those of the list of
agents, `breaker` the circuit breaker. Each has an implementation on Redis; mailboxes have one on
PostgreSQL, one on MongoDB and one in memory too, and one contract suite that all pass.
May import: kernel, ir, base. Needs the extra `redis`.
"""
