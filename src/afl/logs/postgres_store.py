"""Log lines in PostgreSQL. Needs the extra `postgres`.

One transaction takes any number of slices: it locks their spools, sees which of them come next,
adds their chunks and moves the positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

import psycopg
from psycopg import Cursor

from afl.base.closable import Closable
from afl.kernel.errors import BadRequest
from afl.kernel.postgres.database import Database, Row
from afl.logs.applying import Addition, Fit, fit
from afl.logs.merging import order_of
from afl.logs.model import Chunk, ChunkHead, Kind, Opened, Slice, StreamKey
from afl.logs.postgres.statements import SQL
from afl.logs.store import Stream

T = TypeVar("T")
_NOT_MIGRATED = (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName)


class PostgresLogStore(Closable):
    """The log lines of one database."""

    def __init__(self, database: Database) -> None:
        """The database is closed with it."""
        self._database = database

    @classmethod
    def connect(
        cls, url: str, *, max_size: int = 2, prepare_threshold: int | None = 1
    ) -> PostgresLogStore:
        return cls(Database(url, max_size=max_size, prepare_threshold=prepare_threshold))

    def close(self) -> None:
        self._database.close()

    def home(self) -> str:
        ((id_,),) = self._ask("home", {})
        return str(id_)

    def position(self, spool: str) -> int:
        rows = self._ask("position", {"spool": spool})
        return int(rows[0][0]) if rows else 0

    def heard(self, spool: str, worker: str) -> None:
        parameters = {"spool": spool, "worker": worker}
        self._do(lambda cursor: cursor.execute(SQL["heard"], parameters))

    def append(self, slices: Sequence[Slice]) -> dict[str, int]:
        return self._do(lambda cursor: _append(cursor, slices), transaction=True)

    def streams(self, run: str) -> list[Stream]:
        return self._streams("streams", {"run": run})

    def latest_streams(self, limit: int) -> list[Stream]:
        return self._streams("latest_streams", {"limit": limit})

    def _streams(self, statement: str, parameters: Mapping[str, object]) -> list[Stream]:
        return [
            Stream(id_.hex, StreamKey(*key), next_seq, opened_us, last_us, closed_us, lost, heard)
            for id_, *key, next_seq, opened_us, last_us, closed_us, lost, heard in self._ask(
                statement, parameters
            )
        ]

    def heads(self, since: Mapping[str, int]) -> list[ChunkHead]:
        rows = self._ask("heads", {"streams": list(since), "firsts": list(since.values())})
        heads = [
            ChunkHead(stream.hex, first, count, Kind(kind), *rest)
            for stream, first, count, kind, *rest in rows
        ]
        return sorted(heads, key=order_of)

    def bodies(self, heads: Sequence[ChunkHead]) -> Iterable[Chunk]:
        wanted = {
            "streams": [head.stream for head in heads],
            "firsts": [head.first for head in heads],
        }
        found = {(stream.hex, first): body for stream, first, body in self._ask("bodies", wanted)}
        for head in heads:
            body = found.get((head.stream, head.first))
            if body is not None:  # else it was rotated away in this moment
                yield Chunk(head, body)

    def rotate(self, older_than: timedelta, limit: int = 1000) -> int:
        gone = self._ask("rotate", {"older_than": older_than, "limit": limit})
        self._do(lambda cursor: cursor.execute(SQL["rotate_spools"], {"older_than": older_than}))
        return int(gone[0][0])

    def now_us(self) -> int:
        return int(self._ask("now", {})[0][0])

    def _ask(self, name: str, parameters: Mapping[str, object]) -> list[Row]:
        with _migrated():
            return self._database.rows(SQL[name], parameters)

    def _do(self, work: Callable[[Cursor[Row]], T], *, transaction: bool = False) -> T:
        with _migrated():
            return self._database.run(work, transaction=transaction)


@contextmanager
def _migrated() -> Iterator[None]:
    try:
        yield
    except _NOT_MIGRATED as error:
        raise BadRequest(
            "the database has no log lines yet; `afl db migrate` makes room for them"
        ) from error


def _append(cursor: Cursor[Row], slices: Sequence[Slice]) -> dict[str, int]:
    workers = {part.spool: part.worker for part in slices}
    known = {"ids": list(workers), "workers": list(workers.values())}
    cursor.execute(SQL["meet_spools"], known)
    positions: dict[str, int] = dict(cursor.execute(SQL["lock_spools"], known).fetchall())
    taken = []
    for part in slices:
        if fit(part, positions[part.spool]) is Fit.NEXT:
            taken.append(part)
            positions[part.spool] = part.end
    if taken:
        _add(cursor, taken)
        moved = {part.spool: positions[part.spool] for part in taken}
        cursor.execute(SQL["move_spools"], {"ids": list(moved), "positions": list(moved.values())})
    return positions


def _add(cursor: Cursor[Row], slices: Sequence[Slice]) -> None:
    opened = {each.stream: (each, part.spool) for part in slices for each in part.opened}
    cursor.execute(SQL["meet_streams"], _columns(opened.values()))
    rows = cursor.execute(SQL["lock_streams"], {"ids": list(opened)}).fetchall()
    stored = {id_.hex: next_seq for id_, next_seq in rows}
    addition = Addition()
    for part in slices:
        addition.add(part, stored)
    if addition.chunks:
        cursor.execute(SQL["add_chunks"], _chunk_columns(addition.chunks))
        grown = {
            "ids": list(addition.grown),
            "nexts": [next_seq for next_seq, _ in addition.grown.values()],
            "last_us": [last_us for _, last_us in addition.grown.values()],
        }
        cursor.execute(SQL["grow_streams"], grown)
    if addition.closed:
        closed = {
            "ids": list(addition.closed),
            "closed_us": [each.time_us for each in addition.closed.values()],
            "lost": [each.lost for each in addition.closed.values()],
        }
        cursor.execute(SQL["close_streams"], closed)


def _columns(streams: Iterable[tuple[Opened, str]]) -> dict[str, list[object]]:
    rows = list(streams)
    return {
        "ids": [each.stream for each, _ in rows],
        "runs": [_storable(each.key.run) for each, _ in rows],
        "paths": [_storable(each.key.path) for each, _ in rows],
        "attempts": [each.key.attempt for each, _ in rows],
        "names": [_storable(each.key.name) for each, _ in rows],
        "spools": [spool for _, spool in rows],
        "opened": [each.time_us for each, _ in rows],
    }


def _storable(text: str) -> str:
    """The text without what PostgreSQL cannot store: one odd name must not keep all lines back."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def _chunk_columns(chunks: Sequence[Chunk]) -> dict[str, list[object]]:
    heads = [chunk.head for chunk in chunks]
    return {
        "streams": [UUID(head.stream) for head in heads],
        "firsts": [head.first for head in heads],
        "counts": [head.count for head in heads],
        "kinds": [head.kind.value for head in heads],
        "levels": [head.level for head in heads],
        "first_us": [head.first_us for head in heads],
        "last_us": [head.last_us for head in heads],
        "bodies": [chunk.body for chunk in chunks],
    }
