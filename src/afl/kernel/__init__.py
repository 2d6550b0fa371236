"""The kernel: one small durable core under flows, turns, tools, processes and people.

`model` has the rows, `rules` the decisions as pure functions, `machine` how rows change, `requests`
what is refused, `port` what a store promises by role, `memory`, `postgres` and `mongo` the stores,
`working` what every worker is made of. Everything that moves in the product moves through the seven
transactions of `port.TaskQueue`; the invariants I1 to I12 are named in the code where they are
kept. May import `afl.base`.
"""
