"""A live feed through change streams of MongoDB, where there is no NATS. Needs the extra `mongo`.

What is told is a document that is removed as soon as it is written: streams hear of the one, and
nothing stays. Nobody waits for the majority to have it, since what is lost is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bson import ObjectId
from pymongo import DeleteOne, InsertOne, MongoClient, WriteConcern
from pymongo.change_stream import CollectionChangeStream
from pymongo.collection import Collection
from pymongo.errors import PyMongoError

from afl.kernel.mongo.database import DEFAULT_NAME
from afl.kernel.mongo.transaction import Document
from afl.turns.relayed_feed import RelayedEar, RelayedFeed, Topic

_COLLECTION = "live"
#: Streams tell what is in the journal, which is else written every tenth of a second.
_QUIET = WriteConcern(w=1, j=True)
_TIMEOUT_MILLISECONDS = 2000


class MongoFeed(RelayedFeed):
    """Tells what models say in this process to the ears that wish to hear it."""

    def __init__(self, url: str) -> None:
        super().__init__(lambda topic: _connected(url, topic), PyMongoError)


class MongoEar(RelayedEar):
    """Hears what models say in other processes."""

    def __init__(self, url: str) -> None:
        super().__init__(lambda topic: _connected(url, topic), PyMongoError)


class _Line:
    def __init__(self, live: Collection[Document], topic: Topic) -> None:
        self._live = live
        self._hears: list[dict[str, Any]] = [
            {"$match": {"operationType": "insert", "fullDocument.topic": topic.value}},
            {"$project": {"fullDocument.payload": 1}},
        ]
        self._seconds = 0.0
        self._stream = live.watch(self._hears)

    def tell(self, topic: Topic, payload: str) -> None:
        name = ObjectId()
        told = {"_id": name, "topic": topic.value, "payload": payload}
        self._live.bulk_write([InsertOne(told), DeleteOne({"_id": name})])

    def hear(self, seconds: float) -> Iterator[str]:
        # how long a stream waits is said when it is opened
        if seconds != self._seconds or not self._stream.alive:
            self._seconds = seconds
            self._stream = self._continued()
        change = self._stream.try_next()
        if change is not None and isinstance(change["fullDocument"].get("payload"), str):
            yield change["fullDocument"]["payload"]

    def close(self) -> None:
        self._stream.close()

    def _continued(self) -> CollectionChangeStream[Document]:
        """A new stream, from where the one before is."""
        self._stream.close()
        return self._live.watch(
            self._hears,
            max_await_time_ms=int(self._seconds * 1000),
            start_after=self._stream.resume_token,
        )


@contextmanager
def _connected(url: str, topic: Topic) -> Iterator[_Line]:
    client: MongoClient[Document] = MongoClient(
        url,
        serverSelectionTimeoutMS=_TIMEOUT_MILLISECONDS,
        connectTimeoutMS=_TIMEOUT_MILLISECONDS,
        appname="afl-feed",
    )
    with client:
        database = client.get_default_database(DEFAULT_NAME)
        line = _Line(database.get_collection(_COLLECTION, write_concern=_QUIET), topic)
        try:
            yield line
        finally:
            line.close()
