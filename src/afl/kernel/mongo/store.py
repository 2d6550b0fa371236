"""`MongoStore`: the kernel's store on MongoDB."""

from __future__ import annotations

from typing import Self

from afl.base.closable import Closable
from afl.base.ids import IdSource
from afl.base.system import SystemIds
from afl.kernel.mongo.database import Database
from afl.kernel.mongo.queries import MongoDeadLetters, MongoQueries, MongoRetention
from afl.kernel.mongo.shelves import MongoCards, MongoLocks, MongoOutbox, MongoWorkers
from afl.kernel.mongo.sweeping import MongoSweep
from afl.kernel.mongo.tasks import MongoTasks


class MongoStore(
    MongoTasks,
    MongoSweep,
    MongoQueries,
    MongoCards,
    MongoWorkers,
    MongoDeadLetters,
    MongoOutbox,
    MongoLocks,
    MongoRetention,
    Closable,
):
    """Everything a store offers, on a replica set whose schema `migrate` has made.

    Threads may share one store; each transaction borrows a connection from the pool.
    """

    def __init__(self, database: Database, ids: IdSource | None = None) -> None:
        super().__init__(database, ids or SystemIds())

    @classmethod
    def connect(cls, url: str, *, max_size: int = 16) -> Self:
        """A store on the database at this URL. Raises `NotReplicated` for a single server."""
        database = Database(url, max_size=max_size)
        try:
            database.check()
        except BaseException:
            database.close()
            raise
        return cls(database)

    @property
    def database(self) -> Database:
        """For what is kept beside the kernel's rows, on the same connections."""
        return self._database

    def close(self) -> None:
        """Gives all connections back."""
        self._database.close()
