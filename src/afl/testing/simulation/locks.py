"""The user locks of a store under watch, beside a model that is too simple to be wrong."""

from __future__ import annotations

from datetime import datetime, timedelta

from afl.kernel.model import Lock
from afl.testing.simulation.ledger import Violation
from afl.testing.simulation.world import World


class WatchedLocks:
    """What users of locks get instead of the store."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._held: dict[str, Lock] = {}

    def acquire(self, key: str, token: str, duration: timedelta) -> bool:
        now = self._world.now()
        acquired = self._world.store.acquire_lock(key, token, duration) is not None
        holder = self._holder(key, now)
        if acquired != (holder in (None, token)):
            raise Violation("one holder for each lock", f"{token} asked for the lock of {holder}")
        if acquired:
            self._held[key] = Lock(key, token, now + duration)
        return acquired

    def extend(self, key: str, token: str, duration: timedelta) -> bool:
        now = self._world.now()
        extended = self._world.store.extend_lock(key, token, duration)
        if extended != (self._holder(key, now) == token):
            raise Violation("only the holder extends a lock", f"{token} got {extended}")
        if extended:
            self._held[key] = Lock(key, token, now + duration)
        return extended

    def release(self, key: str, token: str) -> bool:
        now = self._world.now()
        released = self._world.store.release_lock(key, token)
        if released != (self._holder(key, now) == token):
            raise Violation("only the holder releases a lock", f"{token} got {released}")
        if released:
            del self._held[key]
        return released

    def _holder(self, key: str, now: datetime) -> str | None:
        lock = self._held.get(key)
        return lock.token if lock is not None and lock.expires_at > now else None
