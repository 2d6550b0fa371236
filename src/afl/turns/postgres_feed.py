"""A live feed through PostgreSQL's NOTIFY, where there is no NATS. Needs the extra `postgres`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import Connection

from afl.kernel.postgres.database import Row
from afl.turns.postgres.statements import SQL
from afl.turns.relayed_feed import RelayedEar, RelayedFeed, Topic


class PostgresFeed(RelayedFeed):
    """Tells what models say in this process to the ears that wish to hear it."""

    def __init__(self, url: str) -> None:
        super().__init__(lambda topic: _connected(url, topic), psycopg.Error)


class PostgresEar(RelayedEar):
    """Hears what models say in other processes."""

    def __init__(self, url: str) -> None:
        super().__init__(lambda topic: _connected(url, topic), psycopg.Error)


@dataclass(frozen=True, slots=True)
class _Line:
    connection: Connection[Row]

    def tell(self, topic: Topic, payload: str) -> None:
        self.connection.execute(SQL[f"tell_{topic.value}"], {"payload": payload})

    def hear(self, seconds: float) -> Iterator[str]:
        for notice in self.connection.notifies(timeout=seconds, stop_after=1):
            yield notice.payload


@contextmanager
def _connected(url: str, topic: Topic) -> Iterator[_Line]:
    # nothing is prepared: it may go through a pooler that cannot carry it
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as connection:
        connection.execute(SQL[f"listen_{topic.value}"])
        yield _Line(connection)
