"""Which way what models say goes to those who watch: as work is heard of, NATS where there is one,
else the database, else within this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from afl.app.extras import extra_part
from afl.turns.feed import LocalFeed
from afl.turns.ports import LiveEar, LiveFeed

_NEEDS = "Watching turns needs"


@dataclass(frozen=True, slots=True)
class Live:
    """Makes the two ends. Whoever has one made closes it."""

    feed: Callable[[], LiveFeed]
    ear: Callable[[], LiveEar]

    @classmethod
    def within(cls) -> Live:
        """For one process."""
        line = LocalFeed()
        return cls(lambda: line, lambda: line)

    @classmethod
    def through_nats(cls, url: str) -> Live:
        return cls(
            lambda: extra_part("afl.turns.nats_feed", "nats", _NEEDS).NatsFeed(url),
            lambda: extra_part("afl.turns.nats_ear", "nats", _NEEDS).NatsEar(url),
        )

    @classmethod
    def through_postgres(cls, url: str) -> Live:
        module = "afl.turns.postgres_feed"
        return cls(
            lambda: extra_part(module, "postgres", _NEEDS).PostgresFeed(url),
            lambda: extra_part(module, "postgres", _NEEDS).PostgresEar(url),
        )

    @classmethod
    def through_mongo(cls, url: str) -> Live:
        module = "afl.turns.mongo_feed"
        return cls(
            lambda: extra_part(module, "mongo", _NEEDS).MongoFeed(url),
            lambda: extra_part(module, "mongo", _NEEDS).MongoEar(url),
        )
