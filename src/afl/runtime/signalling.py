"""Events from outside, to the calls of `afl.event.Wait` that wait for them. Each is taken once."""

from __future__ import annotations

from afl.kernel.model import CallStatus, Json, TaskId
from afl.runtime.persistence import PersistenceAPI

_BATCH = 100


def emit(
    persistence: PersistenceAPI, name: str, key: str, payload: Json, *, id: str | None = None
) -> bool:
    """Keeps an event and hands it to whoever waits. False if this id is known already.

    An event that nobody waits for yet is kept for the first that will.
    """
    is_new = persistence.emit(name, key, payload, id=id)
    deliver(persistence)
    return is_new


def deliver(persistence: PersistenceAPI) -> int:
    """Answers the calls whose events have come. Tells how many.

    Any number of processes may do this at once, and at any moment one may die: an event stays
    paired with its call until the answer is known to be there.
    """
    delivered = 0
    while pairs := persistence.match_events(_BATCH):
        for run, key, payload in pairs:
            call = persistence.kernel.find_call(TaskId(run), key)
            if call is not None:
                persistence.kernel.reply(call.id, CallStatus.OK, {"payload": payload})
                if call.callee is not None:
                    persistence.kernel.stop(call.callee, force=True)
            persistence.settle_event(run, key)
        delivered += len(pairs)
    return delivered
