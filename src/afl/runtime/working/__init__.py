"""What a worker is made of. `afl.runtime.worker` puts it together; in reading order:

    outcomes    what an attempt came to, as the kernel is told: pure
    hands       the tasks in this worker's hands, by fence, and what became of them meanwhile
    execution   where handlers run: threads, an event loop, processes
    scripts     the handler that runs scripts, in processes of their own
    parts       what is committed together or not at all
    flows       runs in hand: turns, and staying while the callees run
    refusals    what is done when the store refuses a part
    dispatcher  the cycle: take in what has ended, commit it, claim the next, start it
    loops       work that is done again and again beside that: renewing, sweeping, listening
    counters    what can be told about all of it

Invariants: only the dispatcher's thread commits and claims. Every write presents a fence. A handler
that ends, however it ends, gives its slot back.
"""
