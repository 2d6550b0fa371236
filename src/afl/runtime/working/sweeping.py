"""What one worker at a time does for all of them: what time has made wrong is put right, runs end
whose tasks were closed, events reach those who wait for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta

from afl.kernel.working.leading import Lead
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.settling import ENDED, Settler
from afl.runtime.signalling import deliver

#: The lock of the worker that sweeps.
SWEEPER = "afl.sweeper"
#: How long it is believed to be there: a few sweeps.
_HELD = timedelta(seconds=4)


class Sweeper:
    """Sweeps if no other worker does. Used by one thread."""

    def __init__(
        self, persistence: PersistenceAPI, owner: str, ring: Callable[[Iterable[str]], None]
    ) -> None:
        self._persistence = persistence
        self._kernel = persistence.kernel
        self._lead = Lead(self._kernel, SWEEPER, owner, _HELD)
        self._ring = ring
        self._settler = Settler(persistence)

    def sweep(self) -> int | None:
        """One sweep. Tells how much there was to do; None if another worker does this."""
        if not self._lead.take():
            return None
        swept = self._kernel.sweep().total
        ended = self._settler.settle_runs()
        if ended:
            self._ring((ENDED,))
        return swept + ended + deliver(self._persistence)

    def release(self) -> None:
        """Lets another worker sweep; without this it does so in a moment."""
        self._lead.release()
