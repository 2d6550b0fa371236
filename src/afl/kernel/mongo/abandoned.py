"""Transactions that nobody goes on with, ended before the server does.

MongoDB keeps the transaction of a process that was killed for a minute, and nobody can write what
it has written. Ours take milliseconds, so one that has been idle for seconds was left behind. If
its process is alive after all, it is told that the transaction is gone, and begins again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from pymongo import MongoClient
from pymongo.errors import PyMongoError

#: What all clients call themselves, so that only sessions of ours are ended.
APP_NAME = "afl"
_IDLE_SECONDS = 5.0
_PAUSE_SECONDS = 1.0


class Abandoned:
    """Ends abandoned transactions of the same user. Threads may share one."""

    def __init__(
        self,
        client: MongoClient[dict[str, Any]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._next = 0.0

    def end(self) -> int:
        """Looks, if nobody of this process has just looked; tells how many were ended."""
        with self._lock:
            if self._monotonic() < self._next:
                return 0
            self._next = self._monotonic() + _PAUSE_SECONDS
        try:
            found = self._find()
            if found:
                self._client.admin.command("killSessions", found)
        except PyMongoError:
            return 0  # not allowed to look: the server ends them in the end
        return len(found)

    def _find(self) -> list[dict[str, Any]]:
        idle = {
            "type": "idleSession",
            "appName": APP_NAME,
            "transaction.timeInactiveMicros": {"$gt": int(_IDLE_SECONDS * 1e6)},
        }
        own = {"$currentOp": {"allUsers": False, "idleSessions": True}}
        found = self._client.admin.aggregate([own, {"$match": idle}])
        return [{"id": each["lsid"]["id"]} for each in found]
