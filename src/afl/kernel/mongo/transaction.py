"""The open transaction of a MongoDB, for the kernel's rows and a caller's own documents.

What is written waits until it must be sent: then all that goes to one collection is one round trip
for each kind of operation. Whoever reads a collection sees what was written to it before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pymongo import DeleteMany, DeleteOne, InsertOne, ReplaceOne, UpdateMany, UpdateOne
from pymongo.client_session import ClientSession
from pymongo.database import Database as MongoDatabase

from afl.kernel.errors import BadRequest
from afl.kernel.port import Transaction

Document = dict[str, Any]
Operation = (
    InsertOne[Document] | ReplaceOne[Document] | UpdateOne | UpdateMany | DeleteOne | DeleteMany
)


class MongoTransaction:
    """One snapshot of everything, and one time. All of its writes are done, or none."""

    __slots__ = ("_database", "_pending", "_session", "is_over", "now")

    def __init__(
        self, database: MongoDatabase[Document], session: ClientSession | None, now: datetime
    ) -> None:
        self._database = database
        self._session = session
        self._pending: dict[str, list[Operation]] = {}
        self.now = now
        self.is_over = False

    def write(self, collection: str, *operations: Operation) -> None:
        """Has operations done, in their order, at the latest when the transaction ends."""
        self._check_open()
        self._pending.setdefault(collection, []).extend(operations)

    @property
    def pending_count(self) -> int:
        """How many operations wait to be sent."""
        return sum(map(len, self._pending.values()))

    def update(self, collection: str, operation: Operation) -> int:
        """Does an operation at once; answers how many documents it found or made."""
        self._flush(collection)
        result = self._database[collection].bulk_write([operation], session=self._session)
        return (
            result.matched_count
            + result.upserted_count
            + result.inserted_count
            + result.deleted_count
        )

    def find(
        self,
        collection: str,
        where: Mapping[str, Any],
        *,
        fields: Mapping[str, Any] | None = None,
        sort: Sequence[tuple[str, int]] | None = None,
        limit: int = 0,
    ) -> list[Document]:
        """These documents, as of the snapshot and with the transaction's own writes."""
        self._flush(collection)
        found = self._database[collection].find(
            where, fields, sort=sort, limit=limit, session=self._session
        )
        return list(found)

    def find_one(
        self,
        collection: str,
        where: Mapping[str, Any],
        *,
        fields: Mapping[str, Any] | None = None,
        sort: Sequence[tuple[str, int]] | None = None,
    ) -> Document | None:
        """The first of these documents."""
        found = self.find(collection, where, fields=fields, sort=sort, limit=1)
        return found[0] if found else None

    def aggregate(self, collection: str, pipeline: Sequence[Mapping[str, Any]]) -> list[Document]:
        """The answer to a pipeline, which must not write."""
        self._flush(collection)
        found = self._database[collection].aggregate(list(pipeline), session=self._session)
        return list(found)

    def end(self) -> None:
        """Sends what is left. The store commits afterwards."""
        for collection in list(self._pending):
            self._flush(collection)
        self.is_over = True

    def _flush(self, collection: str) -> None:
        self._check_open()
        operations = self._pending.pop(collection, None)
        if operations:
            self._database[collection].bulk_write(operations, session=self._session)

    def _check_open(self) -> None:
        if self.is_over:
            raise BadRequest("the transaction is over; `writes` must not keep it")


def opened(transaction: Transaction) -> MongoTransaction:
    """The transaction, which must be one of the MongoDB store."""
    if not isinstance(transaction, MongoTransaction):
        raise TypeError("the transaction is not one of the MongoDB store")
    return transaction
