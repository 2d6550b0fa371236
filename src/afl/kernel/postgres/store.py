"""`PostgresStore`: the kernel's store on PostgreSQL."""

from __future__ import annotations

from typing import Self

from afl.base.closable import Closable
from afl.base.ids import IdSource
from afl.base.system import SystemIds
from afl.kernel.postgres.database import Database
from afl.kernel.postgres.queries import (
    PostgresDeadLetters,
    PostgresQueries,
    PostgresRetention,
)
from afl.kernel.postgres.shelves import (
    PostgresCards,
    PostgresLocks,
    PostgresOutbox,
    PostgresWorkers,
)
from afl.kernel.postgres.sweeping import PostgresSweep
from afl.kernel.postgres.tasks import PostgresTasks


class PostgresStore(
    PostgresTasks,
    PostgresSweep,
    PostgresQueries,
    PostgresCards,
    PostgresWorkers,
    PostgresDeadLetters,
    PostgresOutbox,
    PostgresLocks,
    PostgresRetention,
    Closable,
):
    """Everything a store offers, on a database whose schema `migrate` has made.

    Threads may share one store; each transaction borrows a connection from the pool.
    """

    def __init__(self, database: Database, ids: IdSource | None = None) -> None:
        super().__init__(database, ids or SystemIds())

    @classmethod
    def connect(cls, url: str, *, max_size: int = 16, prepare_threshold: int | None = 1) -> Self:
        """A store on the database at this URL. See `Database` for the rest of the options."""
        return cls(Database(url, max_size=max_size, prepare_threshold=prepare_threshold))

    @property
    def database(self) -> Database:
        """For what is kept beside the kernel's rows, on the same connections."""
        return self._database

    def close(self) -> None:
        """Gives all connections back."""
        self._database.close()
