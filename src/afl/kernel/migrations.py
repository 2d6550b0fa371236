"""The history of a schema: numbered files, each applied once, in their order.

A migration that was applied must stay as it is; its checksum is kept in the database and compared.
How one is applied is for each kind of database.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files

from afl.kernel.errors import KernelError


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


@dataclass(frozen=True, slots=True)
class Step:
    """A migration and when it was applied; None if it is pending."""

    migration: Migration
    applied_at: datetime | None


@dataclass(frozen=True, slots=True)
class Applied:
    """What a database says of a migration."""

    name: str
    checksum: str
    at: datetime


def read_files(package: str, suffix: str) -> list[Migration]:
    """The migrations in the folder `migrations` of a package, in their order."""
    wanted = re.compile(rf"(\d{{4}})_(\w+)\.{suffix}")
    found: list[Migration] = []
    for file in files(package).joinpath("migrations").iterdir():
        if match := wanted.fullmatch(file.name):
            number, name = int(match[1]), match[2]
            found.append(Migration(number, name, file.read_text(encoding="utf-8")))
    return sorted(found, key=lambda migration: migration.number)


def steps_of(migrations: Iterable[Migration], history: Mapping[int, Applied]) -> list[Step]:
    """Every migration of this version, applied or pending.

    Raises:
        MigrationError: the database has one that is not of this version, or another under its
            number.
    """
    unknown = dict(history)
    steps: list[Step] = []
    for migration in migrations:
        applied = unknown.pop(migration.number, None)
        if applied is not None and applied.checksum != migration.checksum:
            raise MigrationError(
                f"migration {migration.number:04} was applied as '{applied.name}' with other "
                f"content than '{migration.name}' has now; a migration must not change once it is "
                "applied"
            )
        steps.append(Step(migration, None if applied is None else applied.at))
    if unknown:
        raise MigrationError(
            f"the database has migration {max(unknown):04}, which this version of AgentFlow does "
            "not know; use a newer version"
        )
    return steps
