"""A PostgreSQL for tests: each run has databases of its own, and leaves none behind.

The server is found through libpq's own variables (PGHOST and so on), else on this machine. Without
one the tests are skipped.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import cache

import psycopg
from psycopg import Connection

from afl.base.ids import IdSource
from afl.kernel.port import Transaction, Writes
from afl.kernel.postgres.database import Database, PostgresTransaction, Row
from afl.kernel.postgres.migrate import migrate
from afl.kernel.postgres.store import PostgresStore
from afl.testing.clock import SequentialIds, VirtualClock

_SERVER = {"host": os.environ.get("PGHOST", "127.0.0.1"), "connect_timeout": "3"}


def url_of(database: str) -> str:
    return psycopg.conninfo.make_conninfo(**{**_SERVER, "dbname": database})


@cache
def server_is_there() -> bool:
    try:
        psycopg.connect(url_of("postgres")).close()
    except psycopg.OperationalError:
        return False
    return True


@contextmanager
def empty_database() -> Iterator[str]:
    """The URL of a database without a schema, which is dropped afterwards."""
    name = f"afl_test_{secrets.token_hex(6)}"
    with psycopg.connect(url_of("postgres"), autocommit=True) as admin:
        admin.execute(f"create database {name}".encode())
        try:
            yield url_of(name)
        finally:
            admin.execute(f"drop database {name} with (force)".encode())


@contextmanager
def migrated_database() -> Iterator[str]:
    """The URL of a database with the schema, which is dropped afterwards."""
    with empty_database() as url:
        migrate(url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("create table public.mark (name text not null)")
            # what a crash of the machine would lose does not matter here
            connection.execute(
                f"alter database {connection.info.dbname} set synchronous_commit to off".encode()
            )
        yield url


_TABLES = "task lane call orphan loss card box_card outbox worker user_lock claim_floor"


def clear(url: str) -> None:
    """Removes every row; the sequences go on, so that fences stay unique."""
    names = [f"afl.{table}" for table in _TABLES.split()]
    with psycopg.connect(url) as connection:
        for name in (*names, "public.mark"):
            # faster than truncate, which makes new files
            connection.execute(f"delete from {name}".encode())


class PostgresHarness:
    """A store on a virtual clock, which the database is told before each transaction."""

    def __init__(self, url: str, ids: IdSource | None = None) -> None:
        self._clock = VirtualClock(tick=timedelta(microseconds=1))
        self._database = Database(url, max_size=2, prepare=self._set_clock)
        self._store = PostgresStore(self._database, ids or SequentialIds())

    @property
    def store(self) -> PostgresStore:
        return self._store

    def advance(self, by: timedelta) -> None:
        self._clock.advance(by)

    def mark(self, name: str) -> Writes:
        def write(transaction: Transaction) -> None:
            assert isinstance(transaction, PostgresTransaction)
            transaction.cursor.execute("insert into public.mark values (%s)", [name])

        return write

    def marks(self) -> list[str]:
        statement = b"select name from public.mark order by name"
        return [row[0] for row in self._database.rows(statement, {})]

    def close(self) -> None:
        self._store.close()

    def _set_clock(self, connection: Connection[Row]) -> None:
        set_clock(connection, self._clock.now())


def set_clock(connection: Connection[Row], now: datetime) -> None:
    connection.execute("select set_config('afl.test_clock', %s, false)", [now.isoformat()])
