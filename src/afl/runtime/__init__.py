"""The runtime: runs of compiled programs, on the kernel.

A run is a flow task of the kernel and rows of its own: one per step. Whoever claims the task loads
the rows that the answers touch, lets the machine advance them to a fixed point, and commits what
changed together with the task. The way through, in reading order:

    states       the states of a step and the tables that say which follows which
    entities     what is stored: steps, runs, and the seeds' view of tasks, servers and events
    plan         a program, indexed for running: who waits for whom, what stands where
    machine      one iteration: pure, from loaded rows and answers to changes
    evaluator    the shell around it: load, advance, commit
    persistence  the port to the rows, `IterationChanges`

Invariants: user code never runs here. A step is found by its run and its path, so making it twice
is the same step. What one answer costs does not depend on the size of the run.
"""
