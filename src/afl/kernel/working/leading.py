"""What one worker at a time does for all of them."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from afl.kernel.errors import KernelError
from afl.kernel.port import Locks


class Lead:
    """A lock that one worker keeps as long as it takes it again and again. Used by one thread."""

    def __init__(self, locks: Locks, key: str, owner: str, duration: timedelta) -> None:
        """A worker that is gone is believed to be there for `duration`."""
        self._locks = locks
        self._key = key
        self._owner = owner
        self._duration = duration
        self._is_ours = False

    def take(self) -> bool:
        """Whether it is ours now."""
        # a look writes nothing, and most workers need no more
        held = None if self._is_ours else self._locks.get_lock(self._key)
        self._is_ours = (held is None or held.token == self._owner) and (
            self._locks.acquire_lock(self._key, self._owner, self._duration) is not None
        )
        return self._is_ours

    def release(self) -> None:
        """Lets another worker lead; without this it does so in a moment."""
        if self._is_ours:
            self._is_ours = False
            with suppress(KernelError):
                self._locks.release_lock(self._key, self._owner)
