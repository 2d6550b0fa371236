"""A PostgreSQL for mailboxes: its clock is moved by hand, its answers get lost, its clients die."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import psycopg
from psycopg import Connection

from afl.app.migrating import migrate
from afl.kernel.doorbell import LocalDoorbell
from afl.kernel.errors import StoreUnavailable
from afl.kernel.postgres.database import Database, Row
from afl.kernel.postgres.statements import Hot, Parameters
from afl.messaging.coordinator import MessageCoordinator, MessageMetrics
from afl.messaging.postgres_coordinator import PostgresMessageCoordinator
from afl.testing.clock import VirtualClock
from afl.testing.mail_conformance.harness import ClientDied, LoopHarness
from tests.kernel.postgres.databases import migrated_database, set_clock

_TABLES = "mail mail_dead mail_seen mail_count mail_turn mail_subscription mail_answer mail_config"


@contextmanager
def mail_database() -> Iterator[str]:
    """The URL of a database with the whole schema, which is dropped afterwards."""
    with migrated_database() as url:
        migrate(url)
        yield url


def clear_mail(url: str) -> None:
    """Removes every row, and has the settings of a new database."""
    with psycopg.connect(url) as connection:
        for table in _TABLES.split():
            connection.execute(f"delete from afl.{table}".encode())
        connection.execute("insert into afl.mail_config default values")


class Server:
    """A database on a virtual clock, with connections that every client of a test borrows."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.clock = VirtualClock(tick=timedelta(microseconds=1))
        self.database = Database(url, max_size=8, prepare=self._set_clock)

    def _set_clock(self, connection: Connection[Row]) -> None:
        set_clock(connection, self.clock.now())


class FaultyDatabase(Database):
    """A client's view of the server, which loses answers, and dies, when it is told to."""

    def __init__(self, server: Server) -> None:
        # without connections of its own: thousands of clients come and go in these tests
        self._server = server
        self.loses_the_next = False
        self.dies_after: int | None = None

    def call(self, statement: Hot, parameters: Parameters) -> list[Row]:
        if self.dies_after == 0:
            raise ClientDied
        rows = self._server.database.call(statement, parameters)
        if self.dies_after is not None:
            self.dies_after -= 1
            if self.dies_after == 0:
                raise ClientDied
        if self.loses_the_next:
            self.loses_the_next = False
            raise StoreUnavailable("the answer was lost")
        return rows


class PostgresMailHarness(LoopHarness):
    """Empty mailboxes on a server."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        clear_mail(server.url)
        self._server = server
        self._doorbell = LocalDoorbell()
        self._clients: dict[int, FaultyDatabase] = {}

    def coordinator(self, metrics: MessageMetrics | None = None) -> MessageCoordinator:
        client = FaultyDatabase(self._server)
        made = PostgresMessageCoordinator(client, self._doorbell, metrics)
        self._clients[id(made)] = client
        return self.keep(made)

    def advance(self, seconds: float) -> None:
        self._server.clock.advance(timedelta(seconds=seconds))

    def lose_answer(self, coordinator: MessageCoordinator) -> None:
        self._clients[id(coordinator)].loses_the_next = True

    def die_after(self, coordinator: MessageCoordinator, commands: int) -> None:
        self._clients[id(coordinator)].dies_after = commands
