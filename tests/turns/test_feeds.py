"""What models say goes from feeds to ears: on every way, also when connections are cut."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import psycopg
import pytest

from afl.turns import postgres_feed
from afl.turns.chunks import CONTENT, END, START, Answer, Chunk, joined
from afl.turns.feed import LocalFeed, chunk_subject
from afl.turns.nats_ear import NatsEar
from afl.turns.nats_feed import NatsFeed
from afl.turns.ports import LiveEar, LiveFeed
from afl.turns.postgres_feed import PostgresEar, PostgresFeed
from tests.kernel.postgres.databases import empty_database, server_is_there

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


@pytest.fixture
def database() -> Iterator[str]:
    if not server_is_there():
        pytest.skip("there is no PostgreSQL to test with")
    with empty_database() as url:
        yield url


@pytest.fixture(params=["within", "postgres", "nats"])
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

    feed: LiveFeed
    if request.param == "postgres":
        url = request.getfixturevalue("database")
        feed = PostgresFeed(url)
        yield feed, lambda: keep(PostgresEar(url))
    else:
        try:
            socket.create_connection(NATS, timeout=1).close()
        except OSError:
            pytest.skip("there is no NATS to test with")
        nats, prefix = f"nats://{NATS[0]}:{NATS[1]}", f"test{secrets.token_hex(4)}."
        feed = NatsFeed(nats, prefix)
        assert feed.wait_until_connected(PATIENCE)
        yield feed, lambda: keep(NatsEar(nats, prefix))
    for ear in ears:
        ear.close()
    feed.close()


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
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_feed, "_WISH_SECONDS", 1.0)
    monkeypatch.setattr(postgres_feed, "_TELL_SECONDS", 0.2)
    feed = PostgresFeed(database)
    with psycopg.connect(database, autocommit=True) as watcher:
        watcher.execute("listen afl_feed_chunks")
        speaker = Speaker(feed)
        speaker.say("nobody hears this")
        ear, hearer = PostgresEar(database), Hearer()
        ear.listen("ann", "t", hearer)
        hearer.wait("nobody hears this")
        # an ear that dies does not say that it listens no more
        ear.close()
        notices = list(watcher.notifies(timeout=2.0))
        assert notices
        assert all("nobody hears this" in each.payload for each in notices)
        speaker.say("nor this")
        assert list(watcher.notifies(timeout=1.0)) == []
    feed.close()


def test_a_connection_that_is_cut_costs_a_moment(database: str) -> None:
    feed, ear, hearer = PostgresFeed(database), PostgresEar(database), Hearer()
    speaker = Speaker(feed)
    ear.listen("ann", "t", hearer)
    speaker.say("Hello")
    hearer.wait("Hello")
    with psycopg.connect(database, autocommit=True) as admin:
        admin.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
    speaker.say(" again")
    # what was lost is told anew when both are back
    hearer.wait("Hello again")
    ear.close()
    feed.close()


def test_nobody_waits_for_what_is_away() -> None:
    for feed, ear in (
        (PostgresFeed("postgresql://127.0.0.1:1/x"), PostgresEar("postgresql://127.0.0.1:1/x")),
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


def test_what_others_say_on_the_channels_is_passed_over(database: str) -> None:
    feed, ear, hearer = PostgresFeed(database), PostgresEar(database), Hearer()
    ear.listen("ann", "t", hearer)
    with psycopg.connect(database, autocommit=True) as other:
        for channel in ("afl_feed_wishes", "afl_feed_chunks"):
            for payload in ("hello", "{}", "[1, {}]", '{"turns": 1}', '{"turns": [1]}'):
                other.execute("select pg_notify(%s, %s)", (channel, payload))
    Speaker(feed).say("Hello")
    hearer.wait("Hello")
    ear.close()
    feed.close()
