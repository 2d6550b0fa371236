"""Connections and transactions: one place that knows what to do when MongoDB fails.

Everything here may be repeated: a transaction that lost a race is done again as a whole, after a
short random wait. A commit whose result is unknown is asked for again, which the server answers by
what has become of it; it is never guessed. A server that cannot be reached is `StoreUnavailable`,
and the caller decides.

Documents are written by majority and to the journal, and read as the majority has them: what was
seen once is not taken back by a failover. Values in filters are numbers, text and lists of these,
never what a caller may have filled with operators.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

from bson.codec_options import CodecOptions
from pymongo import MongoClient, ReadPreference, ReturnDocument, WriteConcern
from pymongo.client_session import ClientSession
from pymongo.collection import Collection
from pymongo.errors import (
    BulkWriteError,
    ConfigurationError,
    DuplicateKeyError,
    InvalidURI,
    PyMongoError,
    ServerSelectionTimeoutError,
    WTimeoutError,
)
from pymongo.read_concern import ReadConcern
from pymongo.results import BulkWriteResult
from pymongo.uri_parser import parse_uri

from afl.kernel.errors import BadRequest, StoreUnavailable
from afl.kernel.mongo.abandoned import APP_NAME, Abandoned
from afl.kernel.mongo.clock import ServerClock
from afl.kernel.mongo.refusals import UNKNOWN, NotReplicated, is_race, translate
from afl.kernel.mongo.transaction import Document, MongoTransaction, Operation

T = TypeVar("T")

#: The name of the database, unless the URL has one.
DEFAULT_NAME = "afl"
_MAJORITY = WriteConcern(w="majority", j=True, wtimeout=30_000)
_SNAPSHOT = ReadConcern("snapshot")
_TRIES = 40
#: Whoever has lost so many races may be up against somebody who is dead.
_TRIES_AMONG_THE_LIVING = 10
_COMMIT_TRIES = 10
_FIRST_WAIT_SECONDS = 0.001
_MAX_WAIT_SECONDS = 0.1
#: How often the driver looks whether a server that was lost is back.
_HEARTBEAT_MILLISECONDS = 1000
#: MongoDB 5.0
_LEAST_WIRE_VERSION = 13


class Database:
    """A client, and transactions with it. Threads may share one; each process needs its own."""

    def __init__(
        self,
        url: str,
        *,
        max_size: int = 16,
        timeout_seconds: float = 10.0,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        """Connections are made when they are needed.

        Args:
            url: a connection string of MongoDB; its database is used, or `afl`.
            max_size: how many connections there may be.
            timeout_seconds: how long to wait for a server that can write.
            clock: for tests that move the time; else the server's is used.
        """
        try:
            parsed = parse_uri(url, warn=True)
            self._client: MongoClient[Document] = MongoClient(
                url,
                maxPoolSize=max_size,
                serverSelectionTimeoutMS=int(timeout_seconds * 1000),
                connectTimeoutMS=int(timeout_seconds * 1000),
                socketTimeoutMS=60_000,
                waitQueueTimeoutMS=int(timeout_seconds * 1000),
                heartbeatFrequencyMS=_HEARTBEAT_MILLISECONDS,
                appname=APP_NAME,
                tz_aware=True,
            )
        except (InvalidURI, ConfigurationError, ValueError) as error:
            raise BadRequest(f"This is no URL of a MongoDB: {error}") from error
        self.name: str = parsed["database"] or DEFAULT_NAME
        self._database = self._client.get_database(
            self.name,
            codec_options=CodecOptions(tz_aware=True),
            read_preference=ReadPreference.PRIMARY,
            read_concern=ReadConcern("majority"),
            write_concern=_MAJORITY,
        )
        self._abandoned = Abandoned(self._client)
        self._own_clock = ServerClock(self._server_time)
        self._clock = clock or self._own_clock.now
        self._wait = threading.Event().wait
        self._random = random.Random()
        self._is_checked = False
        self._is_away = False

    # The server

    def check(self) -> None:
        """Refuses a server that cannot keep what the store promises. Raises `NotReplicated`."""
        with self._translated():
            hello = self._client.admin.command("hello")
        if "setName" not in hello and hello.get("msg") != "isdbgrid":
            raise NotReplicated(
                "This MongoDB is a single server without a replica set, so it has no transactions "
                "and cannot keep flows safe. Start it with `--replSet rs0` and run "
                "`rs.initiate()` once in its shell; one member is enough to begin with."
            )
        if hello["maxWireVersion"] < _LEAST_WIRE_VERSION:
            raise NotReplicated("This MongoDB is too old. Use version 5.0 or later.")
        self._is_checked = True

    @property
    def is_sharded(self) -> bool:
        """Whether the URL leads to a sharded cluster."""
        with self._translated():
            return bool(self._client.admin.command("hello").get("msg") == "isdbgrid")

    def now(self) -> datetime:
        """The time of the server."""
        with self._translated():
            return self._clock()

    def close(self) -> None:
        """Gives all connections back. The database is not usable afterwards."""
        self._client.close()

    def collection(self, name: str) -> Collection[Document]:
        """For what the methods here do not cover; its errors are those of the driver."""
        return self._database[name]

    def command(self, name: str, value: object = 1, **more: object) -> Document:
        """Runs a command of the server on the database."""
        with self._translated():
            return self._database.command({name: value, **more})

    def shard(self, collection: str, key: Mapping[str, Any]) -> None:
        """Spreads a collection of a sharded cluster over its shards."""
        with self._translated():
            self._client.admin.command("shardCollection", f"{self.name}.{collection}", key=key)

    # Outside a transaction

    def find(
        self,
        collection: str,
        where: Mapping[str, Any],
        *,
        fields: Mapping[str, Any] | None = None,
        sort: Sequence[tuple[str, int]] | None = None,
        limit: int = 0,
    ) -> list[Document]:
        """What the majority has of these documents."""
        with self._translated():
            found = self._database[collection].find(where, fields, sort=sort, limit=limit)
            return list(found)

    def find_one(
        self, collection: str, where: Mapping[str, Any], fields: Mapping[str, Any] | None = None
    ) -> Document | None:
        """The first of these documents."""
        with self._translated():
            return self._database[collection].find_one(where, fields)

    def distinct(self, collection: str, field: str, where: Mapping[str, Any]) -> list[Any]:
        """The values that a field has."""
        with self._translated():
            return self._database[collection].distinct(field, where)

    def aggregate(self, collection: str, pipeline: Sequence[Mapping[str, Any]]) -> list[Document]:
        """The answer to a pipeline, which must not write."""
        with self._translated():
            return list(self._database[collection].aggregate(list(pipeline)))

    def write(
        self, collection: str, operations: Sequence[Operation], *, ordered: bool = True
    ) -> BulkWriteResult:
        """Writes to one collection, each document by itself: not all or nothing.

        Raises pymongo's `BulkWriteError` where a document is refused, such as for its key.
        """
        with self._translated():
            return self._database[collection].bulk_write(operations, ordered=ordered)

    def delete(self, collection: str, where: Mapping[str, Any]) -> int:
        """Removes the documents that fit; answers how many there were."""
        with self._translated():
            return self._database[collection].delete_many(where).deleted_count

    def change_one(
        self,
        collection: str,
        where: Mapping[str, Any],
        change: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        sort: Sequence[tuple[str, int]] | None = None,
    ) -> Document | None:
        """Changes the first document that fits and that nobody else is changing, by an update or
        a pipeline; answers it as it is then. None if there is none."""
        with self._translated():
            return self._database[collection].find_one_and_update(
                where, change, sort=sort, return_document=ReturnDocument.AFTER
            )

    def take_numbers(self, counter: str, count: int) -> int:
        """The first of so many numbers that nobody had before, each greater than all before."""
        with self._translated():
            found = self._database["counter"].find_one_and_update(
                {"_id": counter}, {"$inc": {"last": count}}, upsert=True
            )
        return int(found["last"]) + 1 if found is not None else 1

    def write_one(self, work: Callable[[MongoTransaction], T]) -> T:
        """Does work that reads nothing and writes one document, which needs no transaction.

        Raises pymongo's `BulkWriteError` if the document is refused, such as for its key.
        """
        transaction = MongoTransaction(self._database, None, self.now())
        answer = work(transaction)
        assert transaction.pending_count == 1
        with self._translated():
            transaction.end()
        return answer

    # Transactions

    def transact(self, work: Callable[[MongoTransaction], T], *, tries: int = _TRIES) -> T:
        """Does work in a transaction; again as a whole, if it lost a race.

        `work` may be called any number of times, and each time must do the same for the same
        documents. A key that somebody else has just used counts as a lost race: the next time the
        work sees it. Raises `LostRace` when it has lost so many.
        """
        if not self._is_checked:
            self.check()
        for attempt in range(tries):
            try:
                return self._once(work)
            except PyMongoError as error:
                self._note_away(error)
                if not is_race(error) or attempt == tries - 1:
                    raise translate(error) from error
            if attempt == _TRIES_AMONG_THE_LIVING:
                self._abandoned.end()
            bound = min(_MAX_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2**attempt)
            self._wait(self._random.uniform(0, bound))
        raise AssertionError("unreachable")

    def _once(self, work: Callable[[MongoTransaction], T]) -> T:
        self._refuse_if_away()
        # the driver does not wait for a server once a transaction has begun
        now = self._clock()
        with self._client.start_session(causal_consistency=True) as session:
            session.start_transaction(
                read_concern=_SNAPSHOT,
                write_concern=_MAJORITY,
                read_preference=ReadPreference.PRIMARY,
            )
            transaction = MongoTransaction(self._database, session, now)
            try:
                answer = work(transaction)
                transaction.end()
            except BaseException:
                transaction.is_over = True
                session.abort_transaction()
                raise
            self._commit(session)
            return answer

    def _commit(self, session: ClientSession) -> None:
        """Commits. While the result is unknown, asks what it is."""
        for attempt in range(_COMMIT_TRIES):
            try:
                session.commit_transaction()
            except PyMongoError as error:
                unknown = error.has_error_label(UNKNOWN) or isinstance(error, WTimeoutError)
                # without any server there is nobody to ask: the caller asks by repeating
                nobody = isinstance(error, ServerSelectionTimeoutError)
                if not unknown or nobody or attempt == _COMMIT_TRIES - 1:
                    raise
                self._wait(self._random.uniform(0, _MAX_WAIT_SECONDS * (attempt + 1)))
            else:
                return

    @contextmanager
    def _translated(self) -> Iterator[None]:
        self._refuse_if_away()
        try:
            yield
        except (BulkWriteError, DuplicateKeyError):
            raise  # what it means, only the caller knows
        except PyMongoError as error:
            self._note_away(error)
            raise translate(error) from error

    def _note_away(self, error: PyMongoError) -> None:
        self._is_away = self._is_away or isinstance(error, ServerSelectionTimeoutError)

    def _refuse_if_away(self) -> None:
        """Who has waited in vain for a server need not do so again until one is seen: others have
        work to do meanwhile."""
        if not self._is_away:
            return
        if not self._client.topology_description.has_writable_server():
            raise StoreUnavailable("The database has not come back yet.")
        self._is_away = False

    def _server_time(self) -> datetime:
        told: datetime = self._client.admin.command("hello")["localTime"]
        return told
