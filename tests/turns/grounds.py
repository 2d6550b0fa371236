"""Where games of turns are played: real stores on a clock that the game moves, whose process can
die at any commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Protocol

import psycopg
from psycopg import Connection

from afl.kernel.memory import MemoryStore
from afl.kernel.model import ClaimRequest, Commit, Committed, OutboxEntry
from afl.kernel.mongo import database as mongo
from afl.kernel.mongo.store import MongoStore
from afl.kernel.port import Writes
from afl.kernel.postgres.database import Database, Row
from afl.kernel.postgres.store import PostgresStore
from afl.testing.clock import SequentialIds, VirtualClock
from afl.testing.conformance.invariants import Snapshot, take_snapshot
from afl.turns.memory_store import MemoryTurnStore
from afl.turns.mongo_store import MongoTurnStore
from afl.turns.ports import TurnStore
from afl.turns.postgres_store import PostgresTurnStore
from tests.chaos.evidence import read_snapshot
from tests.kernel.mongo.databases import clear
from tests.kernel.postgres.databases import set_clock
from tests.turns.lasting_stores import fresh_turns
from tests.turns.store.kept import clear_turns


class Died(BaseException):
    """The process is gone: nothing of it runs any more."""


class _Mortal:
    """A store whose process dies at the commit that a game chooses, before it or after it."""

    dies_at: int | None = None
    dies_after = False
    #: what was in the outbox until somebody removed it
    trimmed: tuple[OutboxEntry, ...] = ()

    def commit(
        self,
        commits: Sequence[Commit],
        *,
        writes: Writes | None = None,
        eager: ClaimRequest | None = None,
    ) -> list[Committed]:
        now = self.dies_at == 0
        if self.dies_at is not None:
            self.dies_at -= 1
        if now and not self.dies_after:
            raise Died
        done: list[Committed] = super().commit(commits, writes=writes, eager=eager)  # type: ignore[misc]
        if now:
            raise Died
        return done

    def trim_outbox(self, up_to: int) -> int:
        entries: list[OutboxEntry] = super().read_outbox(limit=100_000)  # type: ignore[misc]
        self.trimmed = (*self.trimmed, *(entry for entry in entries if entry.id <= up_to))
        gone: int = super().trim_outbox(up_to)  # type: ignore[misc]
        return gone

    def with_trimmed(self, rows: Snapshot) -> Snapshot:
        """The rows, as if nothing had been removed from the outbox."""
        return replace(rows, outbox=(*self.trimmed, *rows.outbox))


class MortalMemory(_Mortal, MemoryStore):
    """In memory."""


class MortalPostgres(_Mortal, PostgresStore):
    """On PostgreSQL."""


class MortalMongo(_Mortal, MongoStore):
    """On MongoDB."""


Mortal = MortalMemory | MortalPostgres | MortalMongo


class Ground(Protocol):
    """Where a game is played."""

    clock: VirtualClock
    ids: SequentialIds

    @property
    def kernel(self) -> Mortal: ...
    @property
    def store(self) -> TurnStore: ...
    def snapshot(self) -> Snapshot: ...


class MemoryGround:
    def __init__(self) -> None:
        self.clock = VirtualClock(tick=timedelta(microseconds=1))
        self.ids = SequentialIds()
        self.kernel = MortalMemory(self.clock, self.ids)
        self.store: TurnStore = MemoryTurnStore(self.kernel)

    def snapshot(self) -> Snapshot:
        return self.kernel.with_trimmed(take_snapshot(self.kernel))


class PostgresGround:
    """The database is told the virtual time before each transaction."""

    def __init__(self, url: str) -> None:
        self.clock = VirtualClock(tick=timedelta(microseconds=1))
        self.ids = SequentialIds()
        self.kernel = MortalPostgres(Database(url, max_size=4, prepare=self._set_clock), self.ids)
        self.store: TurnStore = PostgresTurnStore(self.kernel)
        #: whoever judges looks past the store
        self.connection: Connection[Row] = psycopg.connect(url, autocommit=True)

    def snapshot(self) -> Snapshot:
        return self.kernel.with_trimmed(read_snapshot(self.connection))

    def rows(self, statement: str) -> list[Row]:
        set_clock(self.connection, self.clock.now())
        return self.connection.execute(statement.encode()).fetchall()

    def close(self) -> None:
        self.connection.close()
        self.kernel.close()

    def _set_clock(self, connection: Connection[Row]) -> None:
        set_clock(connection, self.clock.now())


class MongoGround:
    """Each transaction is told the virtual time."""

    def __init__(self, url: str) -> None:
        self.clock = VirtualClock(tick=timedelta(microseconds=1))
        self.ids = SequentialIds()
        self.kernel = MortalMongo(mongo.Database(url, clock=self.clock.now), self.ids)
        self.store: TurnStore = MongoTurnStore(self.kernel)

    def snapshot(self) -> Snapshot:
        return self.kernel.with_trimmed(take_snapshot(self.kernel))

    def close(self) -> None:
        self.kernel.close()


LastingGround = PostgresGround | MongoGround


class Places:
    """Databases for one module of tests, one of each kind, made when a test needs it."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._urls: dict[str, str] = {}

    def ground(self, kind: str) -> LastingGround:
        """A ground of this kind with nothing on it."""
        if kind not in self._urls:
            self._urls[kind] = self._stack.enter_context(fresh_turns(kind))
        url = self._urls[kind]
        if kind == "postgres":
            clear_turns(url)
            return PostgresGround(url)
        clear(url)
        return MongoGround(url)

    def close(self) -> None:
        self._stack.close()


def turn_places() -> Iterator[Places]:
    """For a fixture."""
    places = Places()
    yield places
    places.close()
