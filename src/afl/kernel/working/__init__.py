"""What every worker is made of, whatever it serves.

    hands     the tasks in a worker's hands, by fence, and what became of them meanwhile
    loops     threads that do one thing again and again: renewing, sweeping, listening
    health    how such a loop fares
    leading   what one worker at a time does for all of them

`afl.runtime.worker` serves facets and flows with them, `afl.turns.worker` turns.
"""
