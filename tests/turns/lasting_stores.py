"""Stores of turns that processes share, by their kind; processes of tests are told it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import pytest

from afl.app.migrating import migrate
from afl.kernel.model import TaskId
from afl.kernel.mongo.store import MongoStore
from afl.kernel.postgres.store import PostgresStore
from afl.turns.mongo_store import MongoTurnStore
from afl.turns.postgres_store import PostgresTurnStore
from tests.kernel.mongo import databases as mongo
from tests.kernel.postgres import databases as postgres

KINDS = ("postgres", "mongo")
LastingTurnStore = PostgresTurnStore | MongoTurnStore


@contextmanager
def lasting_store(kind: str, url: str, *, max_size: int = 2) -> Iterator[LastingTurnStore]:
    """The store of turns at a URL."""
    if kind == "postgres":
        with PostgresStore.connect(url, max_size=max_size) as kernel:
            yield PostgresTurnStore(kernel)
    else:
        with MongoStore.connect(url, max_size=max_size) as kernel_on_mongo:
            yield MongoTurnStore(kernel_on_mongo)


def waiting(store: LastingTurnStore) -> list[TaskId]:
    """The turns that the database has a wait of."""
    if isinstance(store, PostgresTurnStore):
        rows = store.kernel.database.rows(b"select task::text from afl.budget_wait", {})
        return [TaskId(row[0]) for row in rows]
    return [TaskId(row["_id"]) for row in store.kernel.database.find("budget_wait", {})]


@contextmanager
def fresh_turns(kind: str) -> Iterator[str]:
    """The URL of a database with the whole schema, which is dropped afterwards."""
    databases = postgres if kind == "postgres" else mongo
    if not databases.server_is_there():
        pytest.skip(f"there is no {kind} to test with")
    with databases.migrated_database() as url:
        migrate(url)
        yield url


@dataclass(frozen=True, slots=True)
class LastingTurns:
    """A database with the whole schema, for processes too."""

    kind: str
    url: str

    def store(self, max_size: int = 2) -> AbstractContextManager[LastingTurnStore]:
        """A store of turns on it."""
        return lasting_store(self.kind, self.url, max_size=max_size)
