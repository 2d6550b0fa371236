"""A doorbell through PostgreSQL's NOTIFY.

It is kept out of the transactions that do the work: a NOTIFY inside them would make them queue for
one lock when they commit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import Connection

from afl.kernel.postgres.database import Row
from afl.kernel.postgres.statements import SQL
from afl.kernel.relayed_doorbell import RelayedDoorbell, Send

_TURN_SECONDS = 0.5


class PostgresDoorbell(RelayedDoorbell):
    """Rings in every process that uses the same database."""

    def __init__(self, url: str) -> None:
        self._url = url
        super().__init__(psycopg.OperationalError)

    def _listen(self) -> None:
        with self._connect() as connection:
            connection.execute(SQL["listen"])
            self._begin()
            while not self._closed.is_set():
                for notice in connection.notifies(timeout=_TURN_SECONDS, stop_after=1):
                    self._heard(json.loads(notice.payload))

    @contextmanager
    def _connect_sender(self) -> Iterator[Send]:
        with self._connect() as connection:
            yield lambda lists: _notify(connection, lists)

    def _connect(self) -> Connection[Row]:
        # nothing is prepared: what rings may go through a pooler that cannot carry it
        return psycopg.connect(self._url, autocommit=True, prepare_threshold=None)


def _notify(connection: Connection[Row], lists: list[str]) -> None:
    connection.execute(SQL["notify"], {"lists": json.dumps(lists)})
