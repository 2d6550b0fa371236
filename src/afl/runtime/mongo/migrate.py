"""The whole schema's history: the kernel's migrations, then those of the runtime, from 0101 on."""

from __future__ import annotations

from afl.kernel.mongo import migrate as kernel
from afl.kernel.mongo.database import Database
from afl.kernel.mongo.migrate import Migration, Step


def migrations() -> list[Migration]:
    """All migrations of this version, in their order."""
    return [*kernel.migrations(), *_own()]


def status(database: Database) -> list[Step]:
    """Every migration, applied or pending. Changes nothing."""
    return kernel.status(database, _own())


def migrate(database: Database) -> list[Migration]:
    """Apply what is pending. Answers what was applied."""
    return kernel.migrate(database, _own())


def _own() -> list[Migration]:
    return kernel.read_migrations("afl.runtime.mongo")
