"""Turns that wait for room in a budget go on when there is some."""

from __future__ import annotations

from afl.kernel.model import CallStatus
from afl.turns.ports import TurnStore


def wake_waiting(store: TurnStore) -> int:
    """Answers the calls of turns whose budgets have room now. Tells how many.

    Any number of processes may do this at once, and one may die at any moment: the first answer
    counts, and a wait is noted until its call is known to be answered.
    """
    waits = store.ready_waits()
    for wait in waits:
        call = store.kernel.find_call(wait.task, wait.call_key)
        if call is not None:
            store.kernel.reply(call.id, CallStatus.OK, {})
            if call.callee is not None:
                store.kernel.stop(call.callee, force=True)
        store.end_wait(wait.task, wait.call_key)
    return len(waits)
