"""What one worker at a time does for all of them: what time has made wrong is put right, runs end
whose tasks were closed, events reach those who wait for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta

from afl.kernel.errors import KernelError
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
        self._owner = owner
        self._ring = ring
        self._settler = Settler(persistence)
        self._is_ours = False

    def sweep(self) -> int | None:
        """One sweep. Tells how much there was to do; None if another worker does this."""
        if not self._take_lock():
            return None
        swept = self._kernel.sweep().total
        ended = self._settler.settle_runs()
        if ended:
            self._ring((ENDED,))
        return swept + ended + deliver(self._persistence)

    def release(self) -> None:
        """Lets another worker sweep; without this it does so in a moment."""
        if self._is_ours:
            with suppress(KernelError):
                self._kernel.release_lock(SWEEPER, self._owner)

    def _take_lock(self) -> bool:
        # a look writes nothing, and most workers need no more
        held = None if self._is_ours else self._kernel.get_lock(SWEEPER)
        self._is_ours = (held is None or held.token == self._owner) and (
            self._kernel.acquire_lock(SWEEPER, self._owner, _HELD) is not None
        )
        return self._is_ours
