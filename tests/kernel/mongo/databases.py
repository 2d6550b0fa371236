"""A MongoDB for tests: each run has databases of its own, and leaves none behind.

The server is found through `TEST_MONGODB`, else on this machine: a replica set, of one member
at least. Without one the tests are skipped.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from urllib.parse import urlsplit, urlunsplit

from pymongo import InsertOne, MongoClient
from pymongo.errors import PyMongoError

from afl.base.ids import IdSource
from afl.kernel.mongo.database import Database
from afl.kernel.mongo.migrate import Migration, migrate
from afl.kernel.mongo.store import MongoStore
from afl.kernel.mongo.transaction import opened
from afl.kernel.port import Transaction, Writes
from afl.testing.clock import SequentialIds, VirtualClock

_SERVER = os.environ.get("TEST_MONGODB", "mongodb://127.0.0.1:27017/?replicaSet=rs0")


def url_of(database: str) -> str:
    return urlunsplit(urlsplit(_SERVER)._replace(path=f"/{database}"))


@cache
def server_is_there() -> bool:
    client: MongoClient[dict[str, object]] = MongoClient(_SERVER, serverSelectionTimeoutMS=3000)
    try:
        client.admin.command("ping")
    except PyMongoError:
        return False
    finally:
        client.close()
    return True


@contextmanager
def empty_database() -> Iterator[str]:
    """The URL of a database without a schema, which is dropped afterwards."""
    name = f"afl_test_{secrets.token_hex(6)}"
    try:
        yield url_of(name)
    finally:
        drop(url_of(name))


def drop(url: str) -> None:
    client: MongoClient[dict[str, object]] = MongoClient(_SERVER)
    client.drop_database(urlsplit(url).path.strip("/"))
    client.close()


@contextmanager
def migrated_database(more: Sequence[Migration] = ()) -> Iterator[str]:
    """The URL of a database with the schema, which is dropped afterwards."""
    with empty_database() as url:
        database = Database(url)
        migrate(database, more)
        database.command("create", "mark")
        database.close()
        yield url


def clear(url: str) -> None:
    """Removes every document but the schema's history; counters go on."""
    database = Database(url)
    for name in _with_documents(database):
        database.collection(name).delete_many({})
    database.close()


def _with_documents(database: Database) -> list[str]:
    """The collections that are to be emptied and are not empty yet, as most are. One question about
    all of them costs less than one about each."""
    listed = database.command("listCollections", nameOnly=True)["cursor"]["firstBatch"]
    names = [each["name"] for each in listed if not each["name"].startswith("system.")]
    first, *others = [
        {"coll": name, "pipeline": [{"$limit": 1}, {"$project": {"_id": 0, "in": name}}]}
        for name in names
        if name not in {"migration", "counter"}
    ]
    unions = [{"$unionWith": other} for other in others]
    found = database.collection(first["coll"]).aggregate([*first["pipeline"], *unions])
    return [each["in"] for each in found]


class MongoHarness:
    """A store on a virtual clock, which it takes for the server's."""

    def __init__(self, url: str, ids: IdSource | None = None) -> None:
        self._clock = VirtualClock(tick=timedelta(microseconds=1))
        self._database = Database(url, max_size=2, clock=self._clock.now)
        self._store = MongoStore(self._database, ids or SequentialIds())

    @property
    def store(self) -> MongoStore:
        return self._store

    def advance(self, by: timedelta) -> None:
        self._clock.advance(by)

    def mark(self, name: str) -> Writes:
        def write(transaction: Transaction) -> None:
            opened(transaction).write("mark", InsertOne({"name": name}))

        return write

    def marks(self) -> list[str]:
        return sorted(row["name"] for row in self._database.find("mark", {}))

    def close(self) -> None:
        self._store.close()
