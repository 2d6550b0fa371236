"""The whole schema's history: the kernel's migrations, then those of the runtime, from 0101 on."""

from __future__ import annotations

from afl.kernel.postgres import migrate as kernel
from afl.kernel.postgres.migrate import Migration, Step


def migrations() -> list[Migration]:
    """All migrations of this version, in their order."""
    return [*kernel.migrations(), *_own()]


def status(url: str) -> list[Step]:
    """Every migration, applied or pending. Changes nothing."""
    return kernel.status(url, _own())


def migrate(url: str) -> list[Migration]:
    """Apply what is pending. Answers what was applied."""
    return kernel.migrate(url, _own())


def _own() -> list[Migration]:
    return kernel.read_migrations("afl.runtime.postgres")
