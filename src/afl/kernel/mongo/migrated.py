"""Stores that have a MongoDB of their own beside the kernel's. Needs the extra `mongo`."""

from __future__ import annotations

from typing import ClassVar, Self

from afl.base.closable import Closable
from afl.kernel.errors import BadRequest
from afl.kernel.mongo.database import Database


class MigratedStore(Closable):
    """A store whose collections a migration makes: without them a database would take everything,
    and keep no promise."""

    #: The migration that must have been there.
    _MIGRATION: ClassVar[int]
    #: What the database has not yet if it has not, and what helps.
    _MISSING: ClassVar[str]

    def __init__(self, database: Database) -> None:
        """The database is closed with it."""
        self._opened = database
        self._is_migrated = False

    @classmethod
    def connect(cls, url: str, *, max_size: int = 4) -> Self:
        return cls(Database(url, max_size=max_size))

    def close(self) -> None:
        self._opened.close()

    @property
    def _database(self) -> Database:
        if not self._is_migrated:
            if self._opened.find_one("migration", {"_id": self._MIGRATION}) is None:
                raise BadRequest(self._MISSING)
            self._is_migrated = True
        return self._opened
