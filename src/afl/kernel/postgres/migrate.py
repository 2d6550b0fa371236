"""The schema's history: numbered SQL files, each applied once, in its own transaction.

Packages above the kernel have files of their own, which `more` stands for: one history, one order.

A migration that was applied must stay as it is; its checksum is kept in the database and compared.
Any number of processes may migrate at once: they take turns.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files

import psycopg
from psycopg import Connection

from afl.kernel.errors import KernelError, StoreUnavailable
from afl.kernel.postgres.database import Row
from afl.kernel.postgres.statements import SQL

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")


class MigrationError(KernelError):
    """The schema of the database does not fit this version of AgentFlow."""

    code = "kernel.migration"


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Step:
    """A migration and when it was applied; None if it is pending."""

    migration: Migration
    applied_at: datetime | None


def migrations() -> list[Migration]:
    """All migrations of the kernel of this version, in their order."""
    return read_migrations("afl.kernel.postgres")


def read_migrations(package: str) -> list[Migration]:
    """The migrations in the folder `migrations` of a package, in their order."""
    found: list[Migration] = []
    for file in files(package).joinpath("migrations").iterdir():
        if match := _FILE.fullmatch(file.name):
            number, name = int(match[1]), match[2]
            found.append(Migration(number, name, file.read_text(encoding="utf-8")))
    return sorted(found, key=lambda migration: migration.number)


def status(url: str, more: Sequence[Migration] = ()) -> list[Step]:
    """Every migration, applied or pending. Changes nothing."""
    with _connect(url) as connection:
        return _steps(connection, more)


def migrate(url: str, more: Sequence[Migration] = ()) -> list[Migration]:
    """Apply what is pending. Answers what was applied."""
    applied: list[Migration] = []
    with _connect(url) as connection:
        while (migration := _apply_next(connection, more)) is not None:
            applied.append(migration)
    return applied


def _apply_next(connection: Connection[Row], more: Sequence[Migration]) -> Migration | None:
    with connection.transaction():
        connection.execute(SQL["lock_migrations"])
        connection.execute(SQL["make_history_schema"])
        connection.execute(SQL["make_history"])
        pending = [each.migration for each in _steps(connection, more) if each.applied_at is None]
        if not pending:
            return None
        first = pending[0]
        connection.execute(first.sql.encode())
        row = {"number": first.number, "name": first.name, "checksum": first.checksum}
        connection.execute(SQL["note_migration"], row)
        return first


def _steps(connection: Connection[Row], more: Sequence[Migration]) -> list[Step]:
    history = {number: (name, checksum, at) for number, name, checksum, at in _history(connection)}
    steps: list[Step] = []
    for migration in (*migrations(), *more):
        name, checksum, applied_at = history.pop(migration.number, (None, None, None))
        if applied_at is not None and checksum != migration.checksum:
            raise MigrationError(
                f"migration {migration.number:04} was applied as '{name}' with other content than "
                f"'{migration.name}' has now; a migration must not change once it is applied"
            )
        steps.append(Step(migration, applied_at))
    if history:
        raise MigrationError(
            f"the database has migration {max(history):04}, which this version of AgentFlow does "
            "not know; use a newer version"
        )
    return steps


def _history(connection: Connection[Row]) -> list[Row]:
    row = connection.execute(SQL["has_history"]).fetchone()
    return connection.execute(SQL["read_history"]).fetchall() if row and row[0] else []


def _connect(url: str) -> Connection[Row]:
    try:
        return psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=10,
            application_name="afl",
            prepare_threshold=None,  # a pooler may hand every statement to another server
        )
    except psycopg.OperationalError as error:
        raise StoreUnavailable(f"cannot connect to the database: {str(error).strip()}") from error
