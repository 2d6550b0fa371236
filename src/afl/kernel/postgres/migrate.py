"""The schema's history: numbered SQL files, each applied once, in its own transaction.

Packages above the kernel have files of their own, which `more` stands for: one history, one order.

Any number of processes may migrate at once: they take turns.
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
from psycopg import Connection

from afl.kernel.errors import StoreUnavailable
from afl.kernel.migrations import Applied, Migration, MigrationError, Step, read_files, steps_of
from afl.kernel.postgres.database import Row
from afl.kernel.postgres.statements import SQL

__all__ = [
    "Migration",
    "MigrationError",
    "Step",
    "migrate",
    "migrations",
    "read_migrations",
    "status",
]


def migrations() -> list[Migration]:
    """All migrations of the kernel of this version, in their order."""
    return read_migrations("afl.kernel.postgres")


def read_migrations(package: str) -> list[Migration]:
    """The migrations of a package, in their order."""
    return read_files(package, "sql")


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
        connection.execute(first.text.encode())
        row = {"number": first.number, "name": first.name, "checksum": first.checksum}
        connection.execute(SQL["note_migration"], row)
        return first


def _steps(connection: Connection[Row], more: Sequence[Migration]) -> list[Step]:
    history = {number: Applied(*applied) for number, *applied in _history(connection)}
    return steps_of((*migrations(), *more), history)


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
