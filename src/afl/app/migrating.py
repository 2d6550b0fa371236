"""The whole schema's history: the migrations of the kernel and of the packages above it, as one.

Numbers tell whose they are: the kernel's are below 0101, the runtime's below 0201, those of turns
below 0301, those of messaging below 0401, those of logs below 0501, and those of the server come
after. Any number of processes may migrate at once: they take turns.
"""

from __future__ import annotations

from afl.kernel.postgres import migrate as kernel
from afl.kernel.postgres.migrate import Migration, Step, read_migrations

_ABOVE_THE_KERNEL = (
    "afl.runtime.postgres",
    "afl.turns.postgres",
    "afl.messaging.postgres",
    "afl.logs.postgres",
    "afl.server.postgres",
)


def migrations() -> list[Migration]:
    """All migrations of this version, in their order."""
    return [*kernel.migrations(), *_more()]


def status(url: str) -> list[Step]:
    """Every migration, applied or pending. Changes nothing."""
    return kernel.status(url, _more())


def migrate(url: str) -> list[Migration]:
    """Apply what is pending. Answers what was applied."""
    return kernel.migrate(url, _more())


def _more() -> list[Migration]:
    found = [each for package in _ABOVE_THE_KERNEL for each in read_migrations(package)]
    return sorted(found, key=lambda migration: migration.number)
