"""The schema's history: numbered JSON files, each applied once.

A file names collections with their rules and indexes. Applying one twice is the same as once, so
any number of processes may migrate at once, and one that was interrupted goes on. Packages above
the kernel have files of their own, which `more` stands for: one history, one order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pymongo import IndexModel, UpdateOne
from pymongo.errors import CollectionInvalid, OperationFailure

from afl.kernel.migrations import Applied, Migration, MigrationError, Step, read_files, steps_of
from afl.kernel.mongo.database import Database
from afl.kernel.mongo.values import to_micros, to_time

__all__ = [
    "Migration",
    "MigrationError",
    "Step",
    "migrate",
    "migrations",
    "read_migrations",
    "status",
]

_HISTORY = "migration"
_EXISTS = 48


def migrations() -> list[Migration]:
    """All migrations of the kernel of this version, in their order."""
    return read_migrations("afl.kernel.mongo")


def read_migrations(package: str) -> list[Migration]:
    """The migrations of a package, in their order."""
    return read_files(package, "json")


def status(database: Database, more: Sequence[Migration] = ()) -> list[Step]:
    """Every migration, applied or pending. Changes nothing."""
    history = {
        row["_id"]: Applied(row["name"], row["checksum"], to_time(row["applied_at"]))
        for row in database.find(_HISTORY, {})
    }
    return steps_of((*migrations(), *more), history)


def migrate(database: Database, more: Sequence[Migration] = ()) -> list[Migration]:
    """Apply what is pending. Answers what was applied."""
    database.check()
    sharded = database.is_sharded
    pending = [step.migration for step in status(database, more) if step.applied_at is None]
    for migration in pending:
        for collection in json.loads(migration.text)["collections"]:
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
