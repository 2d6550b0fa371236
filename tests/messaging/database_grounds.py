"""Databases with mailboxes for tests that need real processes and real transactions."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import psycopg
from pymongo import InsertOne

from afl.kernel.mongo.database import Database as MongoDatabase
from afl.kernel.mongo.store import MongoStore
from afl.kernel.mongo.transaction import Document, MongoTransaction
from afl.kernel.port import Store, Transaction
from afl.kernel.postgres.database import Database as PostgresDatabase
from afl.kernel.postgres.database import PostgresTransaction, Row
from afl.kernel.postgres.statements import Hot, Parameters
from afl.kernel.postgres.store import PostgresStore
from afl.messaging.models import AgentMessage
from afl.messaging.mongo_coordinator import MongoMessageCoordinator
from afl.messaging.postgres_coordinator import PostgresMessageCoordinator
from tests.messaging import mongo_harness, postgres_harness

PATIENCE_SECONDS = 20.0
Coordinator = PostgresMessageCoordinator | MongoMessageCoordinator


class Slow:
    """Hears the answer to a receipt late."""

    def __init__(self) -> None:
        self.has_received = threading.Event()
        self.may_answer = threading.Event()

    def delay(self) -> None:
        self.has_received.set()
        self.may_answer.wait(PATIENCE_SECONDS)


class Ground(Protocol):
    """A database with empty mailboxes, and what only its own kind can do."""

    kind: str
    url: str

    @property
    def store(self) -> Store: ...
    def coordinator(self) -> Coordinator:
        """A new one on the same mailboxes."""
        ...

    def slow_coordinator(self, slow: Slow) -> Coordinator:
        """One that is delayed after it has received something."""
        ...

    def mark(self, transaction: Transaction) -> None:
        """Writes something of one's own in a transaction."""
        ...

    def marks(self) -> int:
        """How often that was written since somebody asked."""
        ...

    def remembered(self) -> int:
        """How many ids of messages are remembered."""
        ...

    def close(self) -> None: ...


class _SlowPostgres(PostgresDatabase):
    def __init__(self, database: PostgresDatabase, slow: Slow) -> None:
        self._real = database
        self._slow = slow

    def call(self, statement: Hot, parameters: Parameters) -> list[Row]:
        rows = self._real.call(statement, parameters)
        if statement.name == b"afl_mail_receive":
            self._slow.delay()
        return rows


class PostgresGround:
    kind = "postgres"

    def __init__(self, url: str) -> None:
        postgres_harness.clear_mail(url)
        self.url = url
        self.store = PostgresStore.connect(url, max_size=4)
        with psycopg.connect(url) as connection:
            connection.execute("create table if not exists public.mark (what text)")

    def coordinator(self) -> Coordinator:
        return PostgresMessageCoordinator(self.store.database)

    def slow_coordinator(self, slow: Slow) -> Coordinator:
        return PostgresMessageCoordinator(_SlowPostgres(self.store.database, slow))

    def mark(self, transaction: Transaction) -> None:
        assert isinstance(transaction, PostgresTransaction)
        transaction.cursor.execute("insert into public.mark values ('written')")

    def marks(self) -> int:
        (row,) = self.store.database.rows(b"select count(*) from public.mark", {})
        self.store.database.run(lambda cursor: cursor.execute("delete from public.mark"))
        return int(row[0])

    def remembered(self) -> int:
        (row,) = self.store.database.rows(b"select count(*) from afl.mail_seen", {})
        return int(row[0])

    def close(self) -> None:
        self.store.close()


class _SlowMongo(MongoDatabase):
    def __init__(self, url: str, slow: Slow) -> None:
        super().__init__(url)
        self._slow = slow

    def change_one(
        self,
        collection: str,
        where: Mapping[str, Any],
        change: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        sort: Sequence[tuple[str, int]] | None = None,
    ) -> Document | None:
        found = super().change_one(collection, where, change, sort=sort)
        if found is not None:
            self._slow.delay()
        return found


class MongoGround:
    kind = "mongo"

    def __init__(self, url: str) -> None:
        self.url = url
        self.store = MongoStore.connect(url)
        self._slow: list[MongoDatabase] = []
        mongo_harness.clear_mail(self.store.database)

    def coordinator(self) -> Coordinator:
        return MongoMessageCoordinator(self.store.database)

    def slow_coordinator(self, slow: Slow) -> Coordinator:
        self._slow.append(_SlowMongo(self.url, slow))
        return MongoMessageCoordinator(self._slow[-1])

    def mark(self, transaction: Transaction) -> None:
        assert isinstance(transaction, MongoTransaction)
        transaction.write("mark", InsertOne({"what": "written"}))

    def marks(self) -> int:
        marks = self.store.database.collection("mark")
        found = marks.count_documents({})
        marks.delete_many({})
        return found

    def remembered(self) -> int:
        return len(self.store.database.find("mail_seen", {}))

    def close(self) -> None:
        for database in self._slow:
            database.close()
        self.store.close()


def commit(
    ground: Ground, coordinator: Coordinator, *sent: AgentMessage, fails: bool = False
) -> None:
    """A transaction with a mark and these messages, which may fail after all."""

    def write(transaction: Transaction) -> None:
        ground.mark(transaction)
        for each in sent:
            coordinator.send_in(transaction, each)
        if fails:
            raise RuntimeError("not after all")

    ground.store.commit((), writes=write)
