"""A doorbell through PostgreSQL's NOTIFY, on connections of its own.

It is kept out of the transactions that do the work: a NOTIFY inside them would make them queue for
one lock when they commit. A thread listens; another rings, and what is rung while it is busy is
put together.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence

import psycopg
from psycopg import Connection

from afl.kernel.doorbell import LocalDoorbell
from afl.kernel.postgres.database import Row
from afl.kernel.postgres.statements import SQL

_TURN_SECONDS = 0.5
_PAUSE_SECONDS = 1.0


class PostgresDoorbell:
    """Rings in every process that uses the same database."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._local = LocalDoorbell()
        self._condition = threading.Condition()
        self._pending: set[str] = set()
        self._closed = threading.Event()
        self._listening = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._keep, args=(work,), name=f"afl-{work.__name__}", daemon=True
            )
            for work in (self._listen, self._send)
        ]
        for thread in self._threads:
            thread.start()

    def ring(self, lists: Iterable[str]) -> None:
        with self._condition:
            self._pending.update(lists)
            self._condition.notify_all()

    def wait(self, lists: Sequence[str], timeout_seconds: float) -> bool:
        return self._local.wait(lists, timeout_seconds)

    def wait_until_listening(self, timeout_seconds: float) -> bool:
        """Whether rings of others are heard by now."""
        return self._listening.wait(timeout_seconds)

    def close(self) -> None:
        self._closed.set()
        self._local.close()
        with self._condition:
            self._condition.notify_all()
        for thread in self._threads:
            thread.join()

    def _keep(self, work: Callable[[Connection[Row]], None]) -> None:
        """Does the work on a connection, and on a new one when that is lost."""
        while not self._closed.is_set():
            try:
                # nothing is prepared: what rings may go through a pooler that cannot carry it
                with psycopg.connect(
                    self._url, autocommit=True, prepare_threshold=None
                ) as connection:
                    work(connection)
            except psycopg.OperationalError:
                self._listening.clear()
                self._closed.wait(_PAUSE_SECONDS)

    def _listen(self, connection: Connection[Row]) -> None:
        connection.execute(SQL["listen"])
        self._listening.set()
        # whatever rang while nobody listened is lost; let everybody look once
        self._local.ring_all()
        while not self._closed.is_set():
            for notice in connection.notifies(timeout=_TURN_SECONDS, stop_after=1):
                self._local.ring(json.loads(notice.payload))

    def _send(self, connection: Connection[Row]) -> None:
        while not self._closed.is_set():
            with self._condition:
                self._condition.wait_for(lambda: self._pending or self._closed.is_set())
                lists, self._pending = self._pending, set()
            if not lists:
                continue
            try:
                connection.execute(SQL["notify"], {"lists": json.dumps(sorted(lists))})
            except psycopg.OperationalError:
                self.ring(lists)
                raise
