"""The whole schema's history: the migrations of the kernel and of the packages above it, as one.

Numbers tell whose they are: the kernel's are below 0101, the runtime's below 0201, those of turns
below 0301, those of messaging below 0401, those of logs below 0501, and those of the server come
after. Any number of processes may migrate at once. Each kind of database has a history of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from types import ModuleType
from typing import Any, Protocol

from afl.app.engines import MONGO, Engine, known_engine
from afl.app.extras import extra_part

_ABOVE_THE_KERNEL = ("afl.runtime", "afl.turns", "afl.messaging", "afl.logs", "afl.server")


class Migration(Protocol):
    """One step of the history."""

    @property
    def number(self) -> int: ...
    @property
    def name(self) -> str: ...


class Step(Protocol):
    """A migration and when it was applied; None if it is pending."""

    @property
    def migration(self) -> Migration: ...
    @property
    def applied_at(self) -> datetime | None: ...


def migrations(url: str = "postgresql://") -> list[Migration]:
    """All migrations of this version for databases of this kind, in their order."""
    engine = known_engine(url)
    return [*_kernel(engine).migrations(), *_more(engine)]


def status(url: str) -> list[Step]:
    """Every migration, applied or pending. Changes nothing."""
    with _history(url) as (engine, at):
        steps: list[Step] = _kernel(engine).status(at, _more(engine))
        return steps


def migrate(url: str) -> list[Migration]:
    """Apply what is pending. Answers what was applied."""
    with _history(url) as (engine, at):
        applied: list[Migration] = _kernel(engine).migrate(at, _more(engine))
        return applied


@contextmanager
def _history(url: str) -> Iterator[tuple[Engine, Any]]:
    """The kind of the database, and what its migrations are told as the place to work on."""
    engine = known_engine(url)
    if engine is not MONGO:
        yield engine, url
        return
    module = extra_part("afl.kernel.mongo.database", engine.extra, "The MongoDB store needs")
    with closing(module.Database(url)) as database:
        yield engine, database


def _kernel(engine: Engine) -> ModuleType:
    return extra_part(
        f"afl.kernel.{engine.package}.migrate", engine.extra, f"The {engine.name} store needs"
    )


def _more(engine: Engine) -> Sequence[Migration]:
    read: Callable[[str], list[Migration]] = _kernel(engine).read_migrations
    found = [each for owner in _ABOVE_THE_KERNEL for each in read(f"{owner}.{engine.package}")]
    return sorted(found, key=lambda migration: migration.number)
