"""The schema's history: numbered JSON files, each applied once.

A file names collections with their rules and indexes. Applying one twice is the same as once, so
any number of processes may migrate at once, and one that was interrupted goes on. Packages above
the kernel have files of their own, which `more` stands for: one history, one order. A migration
that was applied must stay as it is; its checksum is kept in the database and compared.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import Any

from pymongo import IndexModel, UpdateOne
from pymongo.errors import CollectionInvalid, OperationFailure

from afl.kernel.errors import KernelError
from afl.kernel.mongo.database import Database
from afl.kernel.mongo.values import to_micros, to_time

_FILE = re.compile(r"(\d{4})_(\w+)\.json")
_HISTORY = "migration"
_EXISTS = 48


class MigrationError(KernelError):
    """The schema of the database does not fit this version of AgentFlow."""

    code = "kernel.migration"


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def collections(self) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = json.loads(self.text)["collections"]
        return found


@dataclass(frozen=True, slots=True)
class Step:
    """A migration and when it was applied; None if it is pending."""

    migration: Migration
    applied_at: datetime | None


def migrations() -> list[Migration]:
    """All migrations of the kernel of this version, in their order."""
    return read_migrations("afl.kernel.mongo")


def read_migrations(package: str) -> list[Migration]:
    """The migrations in the folder `migrations` of a package, in their order."""
    found: list[Migration] = []
    for file in files(package).joinpath("migrations").iterdir():
        if match := _FILE.fullmatch(file.name):
            number, name = int(match[1]), match[2]
            found.append(Migration(number, name, file.read_text(encoding="utf-8")))
    return sorted(found, key=lambda migration: migration.number)


def status(database: Database, more: Sequence[Migration] = ()) -> list[Step]:
    """Every migration, applied or pending. Changes nothing."""
    history = {row["_id"]: row for row in database.find(_HISTORY, {})}
    steps: list[Step] = []
    for migration in (*migrations(), *more):
        row = history.pop(migration.number, None)
        if row is not None and row["checksum"] != migration.checksum:
            raise MigrationError(
                f"migration {migration.number:04} was applied as '{row['name']}' with other "
                f"content than '{migration.name}' has now; a migration must not change once it is "
                "applied"
            )
        steps.append(Step(migration, None if row is None else to_time(row["applied_at"])))
    if history:
        raise MigrationError(
            f"the database has migration {max(history):04}, which this version of AgentFlow does "
            "not know; use a newer version"
        )
    return steps


def migrate(database: Database, more: Sequence[Migration] = ()) -> list[Migration]:
    """Apply what is pending. Answers what was applied."""
    database.check()
    sharded = database.is_sharded
    pending = [step.migration for step in status(database, more) if step.applied_at is None]
    for migration in pending:
        for collection in migration.collections:
            _apply(database, collection, sharded=sharded)
        note = {
            "name": migration.name,
            "checksum": migration.checksum,
            "applied_at": to_micros(database.now()),
        }
        by_number = UpdateOne({"_id": migration.number}, {"$setOnInsert": note}, upsert=True)
        database.write(_HISTORY, [by_number])
    return pending


def _apply(database: Database, wanted: Mapping[str, Any], *, sharded: bool) -> None:
    """Makes a collection, or brings it to these rules; makes the indexes that are missing."""
    name, rules = wanted["name"], wanted.get("validator")
    try:
        database.command("create", name, **({} if rules is None else {"validator": rules}))
    except (CollectionInvalid, OperationFailure) as error:
        if getattr(error, "code", None) != _EXISTS:
            raise
        if rules is not None:
            database.command("collMod", name, validator=rules)
    if sharded and "shard_key" in wanted:
        database.shard(name, wanted["shard_key"])
    indexes = [
        IndexModel([tuple(key) for key in index["keys"]], **_options(index))
        for index in wanted.get("indexes", ())
        # a sharded collection keeps what is unique within a shard key only
        if not (sharded and index.get("whole", False))
    ]
    if indexes:
        database.collection(name).create_indexes(indexes)


def _options(index: Mapping[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {"name": index["name"], "unique": index.get("unique", False)}
    if "where" in index:
        options["partialFilterExpression"] = index["where"]
    return options
