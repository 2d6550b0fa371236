"""Two transactions at once, in an order that the test decides: the first is held open, the second
is started and seen to wait, then the first is ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import psycopg
from psycopg import Connection, Cursor

from afl.base.system import SystemIds
from afl.kernel.postgres.database import Database, Row, Session
from afl.kernel.postgres.statements import Hot, Parameters
from afl.kernel.postgres.store import PostgresStore

T = TypeVar("T")
_PATIENCE_SECONDS = 20.0


class HeldDatabase(Database):
    """One connection with an open transaction, which only the test ends."""

    def __init__(self, connection: Session) -> None:
        self._connection = connection

    def call(self, statement: Hot, parameters: Parameters) -> list[Row]:
        self._begin()
        return self._connection.call(statement, parameters)

    def run(self, work: Callable[[Cursor[Row]], T], *, transaction: bool = False) -> T:
        self._begin()
        with self._connection.cursor() as cursor:
            return work(cursor)

    def _begin(self) -> None:
        """The driver begins a transaction before the first statement of a cursor."""
        self._connection.execute("select 1")


@dataclass(slots=True)
class Table:
    """Two players and an onlooker."""

    first: PostgresStore
    second: PostgresStore
    connection: Session
    onlooker: Connection[Row]
    second_pid: int
    pool: ThreadPoolExecutor

    def second_starts(self, action: Callable[[PostgresStore], T]) -> Future[T]:
        """Starts the second transaction and returns when it waits for the first, or has ended."""
        future = self.pool.submit(action, self.second)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not future.done() and not self._waits():
            assert time.monotonic() < deadline, "the second transaction neither waits nor ends"
        return future

    def end_first(self, *, commit: bool) -> None:
        if commit:
            self.connection.commit()
        else:
            self.connection.rollback()

    def _waits(self) -> bool:
        row = self.onlooker.execute(
            "select cardinality(pg_blocking_pids(%s)) > 0", [self.second_pid]
        ).fetchone()
        return row is not None and bool(row[0])


@contextmanager
def two_players(url: str, later: timedelta = timedelta(0)) -> Iterator[Table]:
    """Players whose clocks are both ahead of the database's by the same."""

    def set_clock(connection: Connection[Row]) -> None:
        connection.execute(
            "select set_config('afl.test_clock', (clock_timestamp() + %s)::text, false)", [later]
        )

    database = Database(url, max_size=1, prepare=set_clock if later else None)
    with (
        Session.connect(url) as connection,
        psycopg.connect(url, autocommit=True) as onlooker,
        ThreadPoolExecutor(1) as pool,
        PostgresStore(database) as second,
    ):
        if later:
            set_clock(connection)
            connection.commit()
        pid = database.run(lambda cursor: cursor.connection.info.backend_pid)
        first = PostgresStore(HeldDatabase(connection), SystemIds())
        yield Table(first, second, connection, onlooker, pid, pool)
