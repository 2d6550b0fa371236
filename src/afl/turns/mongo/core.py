"""What every part of the MongoDB store of turns shares."""

from __future__ import annotations

from afl.kernel.mongo.database import Database
from afl.kernel.mongo.rows import RowDocuments
from afl.kernel.mongo.store import MongoStore
from afl.kernel.mongo.values import Values


class MongoCore:
    """The kernel's connections, and how its rows are read."""

    def __init__(self, kernel: MongoStore) -> None:
        self._kernel = kernel
        self._rows = RowDocuments(Values(kernel.database))

    @property
    def _database(self) -> Database:
        return self._kernel.database
