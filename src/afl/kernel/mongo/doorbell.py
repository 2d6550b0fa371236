"""A doorbell through a change stream.

A ring counts up the document of its list, without waiting for the majority: what is lost in a
failover is a ring, and rings may be lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pymongo import MongoClient, UpdateOne, WriteConcern
from pymongo.collection import Collection
from pymongo.errors import PyMongoError

from afl.kernel.mongo.database import DEFAULT_NAME
from afl.kernel.mongo.transaction import Document
from afl.kernel.relayed_doorbell import RelayedDoorbell, Send

_TURN_MILLISECONDS = 500
#: The list that stands for none, since every ring needs a document.
_NOBODY = ""
#: Streams tell what is in the journal, which is else written every tenth of a second.
_QUIET = WriteConcern(w=1, j=True)
_RINGS: list[dict[str, Any]] = [
    {"$match": {"operationType": {"$in": ["insert", "update", "replace"]}}},
    {"$project": {"documentKey": 1}},
]


class MongoDoorbell(RelayedDoorbell):
    """Rings in every process that uses the same database."""

    def __init__(self, url: str) -> None:
        self._url = url
        super().__init__(PyMongoError)

    def _listen(self) -> None:
        with (
            self._connect() as rings,
            rings.watch(_RINGS, max_await_time_ms=_TURN_MILLISECONDS) as stream,
        ):
            self._begin()
            # a stream ends when its collection is dropped, such as by a restore
            while stream.alive and not self._closed.is_set():
                change = stream.try_next()
                if change is not None:
                    self._heard([change["documentKey"]["_id"]])

    @contextmanager
    def _connect_sender(self) -> Iterator[Send]:
        with self._connect() as rings:
            yield lambda lists: _count_up(rings, lists)

    @contextmanager
    def _connect(self) -> Iterator[Collection[Document]]:
        client: MongoClient[Document] = MongoClient(
            self._url, maxPoolSize=1, serverSelectionTimeoutMS=2000, appname="afl-doorbell"
        )
        with client:
            database = client.get_default_database(DEFAULT_NAME)
            yield database.get_collection("ring", write_concern=_QUIET)


def _count_up(rings: Collection[Document], lists: list[str]) -> None:
    rings.bulk_write(
        [
            UpdateOne({"_id": name}, {"$inc": {"rings": 1}}, upsert=True)
            for name in lists or [_NOBODY]
        ]
    )
