"""What models say goes from feeds to ears: on every way, also when connections are cut."""

from __future__ import annotations

import secrets
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import psycopg
import pytest
from pymongo import MongoClient
from pymongo.collection import Collection

from afl.turns import relayed_feed
from afl.turns.chunks import CONTENT, END, START, Answer, Chunk, joined
from afl.turns.feed import LocalFeed, chunk_subject
from afl.turns.mongo_feed import MongoEar, MongoFeed
from afl.turns.nats_ear import NatsEar
from afl.turns.nats_feed import NatsFeed
from afl.turns.ports import LiveEar, LiveFeed
from afl.turns.postgres_feed import PostgresEar, PostgresFeed
from afl.turns.relayed_feed import Topic
from tests.kernel.mongo import databases as mongo
from tests.kernel.postgres import databases as postgres

PATIENCE = 60
NATS = ("127.0.0.1", 4222)


class Speaker:
    """A model that speaks in a turn."""

    def __init__(self, feed: LiveFeed, turn: str = "t") -> None:
        self._feed = feed
        self._turn = turn
        self._index = 0
        self.say("", START)

    def say(self, text: str, kind: str = CONTENT) -> None:
        index, self._index = self._index, self._index + 1
        chunk = Chunk(self._turn, 1, 0, kind, text, index, index + 1)
        self._feed.publish(chunk_subject("ann"), chunk.body())


@dataclass
class Hearer:
    """Somebody who listens to a turn."""

    answer: Answer = field(default_factory=Answer)
    news: threading.Condition = field(default_factory=threading.Condition)

    def __call__(self, chunk: Chunk) -> None:
        with self.news:
            self.answer.take(chunk)
            self.news.notify_all()

    @property
    def text(self) -> list[tuple[str, str]]:
        return list(joined(self.answer.pieces))

    def wait(self, text: str, *, over: bool = False) -> None:
        with self.news:
            assert self.news.wait_for(
                lambda: self.text == [(CONTENT, text)] and self.answer.is_over == over, PATIENCE
            ), self.text


class Through(ABC):
    """A database that what is said goes through."""

    def __init__(self, url: str) -> None:
        self.url = url

    @abstractmethod
    def feed(self) -> LiveFeed: ...

    @abstractmethod
    def ear(self) -> LiveEar: ...

    @abstractmethod
    def tell(self, topic: Topic, payload: str) -> None:
        """As somebody else who uses the same way."""

    @abstractmethod
    def watched(self) -> AbstractContextManager[Callable[[float], list[str]]]:
        """Hears what goes to ears: what is yielded answers what has come in so many seconds."""

    @abstractmethod
    def cut(self) -> None:
        """The connections of all."""


class ThroughPostgres(Through):
    def feed(self) -> LiveFeed:
        return PostgresFeed(self.url)

    def ear(self) -> LiveEar:
        return PostgresEar(self.url)

    def tell(self, topic: Topic, payload: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as other:
            other.execute("select pg_notify(%s, %s)", (f"afl_feed_{topic.value}", payload))

    @contextmanager
    def watched(self) -> Iterator[Callable[[float], list[str]]]:
        with psycopg.connect(self.url, autocommit=True) as watcher:
            watcher.execute("listen afl_feed_chunks")
            yield lambda seconds: [each.payload for each in watcher.notifies(timeout=seconds)]

    def cut(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as admin:
            admin.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid()"
            )


class ThroughMongo(Through):
    def feed(self) -> LiveFeed:
        return MongoFeed(self.url)

    def ear(self) -> LiveEar:
        return MongoEar(self.url)

    def tell(self, topic: Topic, payload: str) -> None:
        with self._live() as live:
            live.insert_one({"topic": topic.value, "payload": payload})
            live.insert_one({"topic": topic.value, "payload": 1})
            live.insert_one({"topic": topic.value})

    @contextmanager
    def watched(self) -> Iterator[Callable[[float], list[str]]]:
        inserts = [{"$match": {"operationType": "insert", "fullDocument.topic": "chunks"}}]
        with self._live() as live, live.watch(inserts, max_await_time_ms=100) as stream:

            def heard(seconds: float) -> list[str]:
                end = monotonic() + seconds
                found = []
                while monotonic() < end:
                    if (change := stream.try_next()) is not None:
                        found.append(change["fullDocument"]["payload"])
                return found

            yield heard
            assert live.count_documents({}) == 0  # nothing of it stays

    def cut(self) -> None:
        with self._live() as live:
            cursors = live.database.client.admin.aggregate(
                [
                    {"$currentOp": {"idleCursors": True, "allUsers": True}},
                    {"$match": {"ns": live.full_name, "cursor.cursorId": {"$exists": True}}},
                ]
            )
            ids = [each["cursor"]["cursorId"] for each in cursors]
            killed = live.database.command("killCursors", "live", cursors=ids)["cursorsKilled"]
            assert len(killed) == 2  # that of the feed and that of the ear

    @contextmanager
    def _live(self) -> Iterator[Collection[dict[str, Any]]]:
        client: MongoClient[dict[str, Any]] = MongoClient(self.url)
        with client:
            yield client.get_default_database()["live"]


@contextmanager
def opened(kind: str) -> Iterator[Through]:
    """A database of this kind."""
    if kind == "postgres":
        if not postgres.server_is_there():
            pytest.skip("there is no PostgreSQL to test with")
        with postgres.empty_database() as url:
            yield ThroughPostgres(url)
    else:
        if not mongo.server_is_there():
            pytest.skip("there is no MongoDB to test with")
        with mongo.empty_database() as url:
            yield ThroughMongo(url)


@pytest.fixture(params=["postgres", "mongo"])
def database(request: pytest.FixtureRequest) -> Iterator[Through]:
    with opened(request.param) as through:
        yield through


@pytest.fixture(params=["within", "postgres", "mongo", "nats"])
def line(request: pytest.FixtureRequest) -> Iterator[tuple[LiveFeed, Callable[[], LiveEar]]]:
    """A feed, and ears to it."""
    if request.param == "within":
        local = LocalFeed()
        yield local, lambda: local
        return
    ears: list[LiveEar] = []

    def keep(ear: LiveEar) -> LiveEar:
        ears.append(ear)
        return ear

    with ExitStack() as stack:
        feed: LiveFeed
        if request.param == "nats":
            nats, prefix = _nats(), f"test{secrets.token_hex(4)}."
            feed = NatsFeed(nats, prefix)
            assert feed.wait_until_connected(PATIENCE)
            yield feed, lambda: keep(NatsEar(nats, prefix))
        else:
            through = stack.enter_context(opened(request.param))
            feed = through.feed()
            yield feed, lambda: keep(through.ear())
        for ear in ears:
            ear.close()
        feed.close()


def _nats() -> str:
    try:
        socket.create_connection(NATS, timeout=1).close()
    except OSError:
        pytest.skip("there is no NATS to test with")
    return f"nats://{NATS[0]}:{NATS[1]}"


def test_everybody_hears_everything(line: tuple[LiveFeed, Callable[[], LiveEar]]) -> None:
    feed, make_ear = line
    speaker, other = Speaker(feed), Speaker(feed, "another turn")
    speaker.say("Hello")
    first, second = Hearer(), Hearer()
    one, two = make_ear(), make_ear()
    stop = one.listen("ann", "t", first)
    first.wait("Hello")
    other.say("Ho")
    speaker.say(" world")
    first.wait("Hello world")
    # who comes later has missed nothing, and does not disturb the others
    two.listen("ann", "t", second)
    second.wait("Hello world")
    speaker.say(".")
    first.wait("Hello world.")
    stop()
    speaker.say("\u2026" * 5000)
    speaker.say("", END)
    second.wait("Hello world." + "\u2026" * 5000, over=True)
    assert first.text == [(CONTENT, "Hello world.")]


def test_a_model_that_nobody_listens_to_costs_the_database_nothing(
    database: Through, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relayed_feed, "_WISH_SECONDS", 1.0)
    monkeypatch.setattr(relayed_feed, "_TELL_SECONDS", 0.2)
    feed = database.feed()
    with database.watched() as told:
        speaker = Speaker(feed)
        speaker.say("nobody hears this")
        ear, hearer = database.ear(), Hearer()
        ear.listen("ann", "t", hearer)
        hearer.wait("nobody hears this")
        # an ear that dies does not say that it listens no more
        ear.close()
        payloads = told(2.0)
        assert payloads
        assert all("nobody hears this" in each for each in payloads)
        speaker.say("nor this")
        assert told(1.0) == []
        feed.close()


def test_a_connection_that_is_cut_costs_a_moment(database: Through) -> None:
    feed, ear, hearer = database.feed(), database.ear(), Hearer()
    speaker = Speaker(feed)
    ear.listen("ann", "t", hearer)
    speaker.say("Hello")
    hearer.wait("Hello")
    database.cut()
    speaker.say(" again")
    # what was lost is told anew when both are back
    hearer.wait("Hello again")
    ear.close()
    feed.close()


def test_a_restore_that_drops_everything_costs_a_moment() -> None:
    with opened("mongo") as database:
        feed, ear, hearer = database.feed(), database.ear(), Hearer()
        speaker = Speaker(feed)
        ear.listen("ann", "t", hearer)
        speaker.say("Hello")
        hearer.wait("Hello")
        mongo.drop(database.url)
        speaker.say(" again")
        hearer.wait("Hello again")
        ear.close()
        feed.close()


def test_nobody_waits_for_what_is_away() -> None:
    for feed, ear in (
        (PostgresFeed("postgresql://127.0.0.1:1/x"), PostgresEar("postgresql://127.0.0.1:1/x")),
        (MongoFeed("mongodb://127.0.0.1:1/x"), MongoEar("mongodb://127.0.0.1:1/x")),
        (NatsFeed("nats://127.0.0.1:1"), NatsEar("nats://127.0.0.1:1")),
    ):
        hearer = Hearer()
        stop = ear.listen("ann", "t", hearer)
        speaker = Speaker(feed)
        for _ in range(20_000):
            speaker.say("x")
        stop()
        ear.close()
        feed.close()
        speaker.say("x")
        assert hearer.text == []


def test_what_others_say_on_the_channels_is_passed_over(database: Through) -> None:
    feed, ear, hearer = database.feed(), database.ear(), Hearer()
    ear.listen("ann", "t", hearer)
    for topic in Topic:
        for payload in ("hello", "{}", "[1, {}]", '{"turns": 1}', '{"turns": [1]}'):
            database.tell(topic, payload)
    Speaker(feed).say("Hello")
    hearer.wait("Hello")
    ear.close()
    feed.close()
