"""Connections out of a pool, without the way in and out for those that are used all the time: that
takes as long as a short statement."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any, Generic, TypeVar

from psycopg import Connection
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

C = TypeVar("C", bound=Connection[Any])

#: How long a connection stays out of the pool before that may see to it again.
_OUT_SECONDS = 1.0
#: How long to wait for a connection when the last wait was for nothing: the pool goes on trying.
_AWAY_SECONDS = 0.5


class Pool(Generic[C]):
    """A pool that is opened when it is needed, and what of it is at hand."""

    def __init__(self, pool: ConnectionPool[C]) -> None:
        self._pool = pool
        self._opening = threading.Lock()
        self._opened = False
        self._is_away = False
        #: what nobody uses, last in, first out, each with the time until which it stays here
        self._at_hand: deque[tuple[C, float]] = deque()
        #: one for each that waits for the pool: while there is any, all goes back to that
        self._waiting: list[None] = []

    def take(self) -> tuple[C, float]:
        """A connection, and until when it stays out. Waits until there is one."""
        try:
            return self._at_hand.pop()
        except IndexError:
            pass
        if not self._opened:
            self._open()
        # first to wait and then to look again: who gives back does it the other way round
        self._waiting.append(None)
        try:
            return self._at_hand.pop()
        except IndexError:
            return self._from_pool(), time.monotonic() + _OUT_SECONDS
        finally:
            self._waiting.pop()

    def _from_pool(self) -> C:
        try:
            connection = self._pool.getconn(_AWAY_SECONDS if self._is_away else None)
        except PoolTimeout:
            self._is_away = True
            raise
        self._is_away = False
        return connection

    def give_back(self, taken: tuple[C, float]) -> None:
        connection, until = taken
        if connection.pgconn.transaction_status != TransactionStatus.IDLE:
            # lost, or left in the middle of something: the pool knows what to do
            self._pool.putconn(connection)
            return
        self._at_hand.append(taken)
        if self._waiting or time.monotonic() > until:
            self._put_back_all()

    def check(self) -> None:
        """Replaces connections that are lost."""
        self._put_back_all()
        self._pool.check()

    def close(self) -> None:
        # from now on nothing is kept at hand
        self._waiting.append(None)
        self._put_back_all()
        self._pool.close()

    def _put_back_all(self) -> None:
        while True:
            try:
                connection, _ = self._at_hand.pop()
            except IndexError:
                return
            self._pool.putconn(connection)

    def _open(self) -> None:
        with self._opening:
            if not self._opened:
                self._pool.open()
                self._opened = True
