"""What one turn worker at a time does for all of them."""

from __future__ import annotations

from datetime import timedelta

from afl.kernel.working.leading import Lead
from afl.turns.budget_waits import wake_waiting
from afl.turns.ports import TurnStore

#: The lock of the turn worker that sweeps. Workers of flows have one of their own: each kind has
#: more to put right than the kernel's rows, and sweeping those twice does no harm.
SWEEPER = "afl.turns.sweeper"
_HELD = timedelta(seconds=4)
#: How much of each kind one sweep puts right; whoever finds so much sweeps again at once.
SWEPT_AT_ONCE = 100


class TurnSweeper:
    """Puts right what time has made wrong, wakes turns whose budgets have room again, and counts
    what turns had reserved that ended without a word. Used by one thread."""

    def __init__(self, store: TurnStore, owner: str) -> None:
        self._store = store
        self._lead = Lead(store.kernel, SWEEPER, owner, _HELD)

    def sweep(self) -> int | None:
        """One sweep. Tells how much there was to do; None if another worker does this."""
        if not self._lead.take():
            return None
        swept = self._store.kernel.sweep(SWEPT_AT_ONCE).total
        # before the waits: what is settled may leave room
        settled = self._store.settle_holds_of_closed(SWEPT_AT_ONCE)
        return swept + settled + wake_waiting(self._store)

    def release(self) -> None:
        """Lets another worker sweep; without this it does so in a moment."""
        self._lead.release()
