"""What a worker is made of, beside `afl.kernel.working`. `afl.runtime.worker` puts it together; in
reading order:

    outcomes    what an attempt came to, as the kernel is told: pure
    execution   where handlers run: threads, an event loop, processes
    in_turn     more attempts than slots, one after the other
    scripts     the handler that runs scripts, in processes of their own
    parts       what is committed together or not at all
    at_hand     which work needs no task
    staying     whether a run stays in hand while its callees run
    flows       runs in hand: their turns
    refusals    what is done when the store refuses a part
    dispatcher  the cycle: take in what has ended, commit it, claim the next, start it
    counters    what can be told about all of it

Invariants: only the dispatcher's thread commits and claims. Every write presents a fence. A handler
that ends, however it ends, gives its slot back.
"""
