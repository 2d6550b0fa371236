"""What a MongoDB had to read for what it was asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from afl.kernel.mongo.database import Database
from afl.kernel.mongo.transaction import Document

_OURS = {"ns": {"$not": {"$regex": r"\.(system|migration)"}}, "keysExamined": {"$exists": True}}


class Profile:
    """What was asked since the profile began."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def questions(self) -> list[Document]:
        """Everything that had to look for documents."""
        return self._database.find("system.profile", _OURS)

    def whole(self, most: int) -> list[tuple[str, str, int]]:
        """Questions that read a whole collection, or more than so much: which collection, how, and
        how much was read."""
        found = [
            (
                question["ns"].partition(".")[2],
                question.get("planSummary", ""),
                question["keysExamined"] + question.get("docsExamined", 0),
            )
            for question in self.questions()
        ]
        return [each for each in found if "COLLSCAN" in each[1] or each[2] > most]


@contextmanager
def profiled(database: Database) -> Iterator[Profile]:
    """Has everything noted that the database is asked."""
    # the usual megabyte loses the first ones
    database.collection("system.profile").drop()
    database.command("create", "system.profile", capped=True, size=64 * 1024 * 1024)
    database.command("profile", 2)
    try:
        yield Profile(database)
    finally:
        database.command("profile", 0)
        database.collection("system.profile").drop()
