"""Doorbells: rings are heard, by the right ones, and none is missed between looking and waiting."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from afl.kernel.doorbell import Doorbell, LocalDoorbell
from afl.kernel.mongo.doorbell import MongoDoorbell
from afl.kernel.nats_doorbell import NatsDoorbell
from afl.kernel.postgres.doorbell import PostgresDoorbell
from tests.kernel.mongo import databases as mongo
from tests.kernel.postgres.databases import server_is_there, url_of

LONG = 20.0
NATS = ("127.0.0.1", 4222)
RINGS = mongo.url_of(f"afl_test_rings_{os.getpid()}")


@pytest.fixture(scope="module", autouse=True)
def _no_rings_left() -> Iterator[None]:
    yield
    if mongo.server_is_there():
        mongo.drop(RINGS)


def _nats_is_there() -> bool:
    try:
        socket.create_connection(NATS, timeout=1).close()
    except OSError:
        return False
    return True


def _local() -> tuple[Doorbell, Doorbell]:
    bell = LocalDoorbell()
    return bell, bell


def _postgres() -> tuple[Doorbell, Doorbell]:
    if not server_is_there():
        pytest.skip("there is no PostgreSQL to test with")
    bells = PostgresDoorbell(url_of("postgres")), PostgresDoorbell(url_of("postgres"))
    assert all(bell.wait_until_listening(LONG) for bell in bells)
    return bells


def _nats() -> tuple[Doorbell, Doorbell]:
    if not _nats_is_there():
        pytest.skip("there is no NATS to test with")
    prefix = f"afl.test.{secrets.token_hex(4)}"
    url = f"nats://{NATS[0]}:{NATS[1]}"
    bells = NatsDoorbell(url, prefix), NatsDoorbell(url, prefix)
    assert all(bell.wait_until_listening(LONG) for bell in bells)
    return bells


def _mongo() -> tuple[Doorbell, Doorbell]:
    if not mongo.server_is_there():
        pytest.skip("there is no MongoDB to test with")
    bells = MongoDoorbell(RINGS), MongoDoorbell(RINGS)
    assert all(bell.wait_until_listening(LONG) for bell in bells)
    return bells


@pytest.fixture(
    params=[_local, _postgres, _nats, _mongo], ids=["local", "postgres", "nats", "mongo"]
)
def bells(request: pytest.FixtureRequest) -> Iterator[tuple[Doorbell, Doorbell]]:
    """Two ends of one doorbell, as two processes would have them."""
    make: Callable[[], tuple[Doorbell, Doorbell]] = request.param
    one, other = make()
    yield one, other
    one.close()
    other.close()


#: A list of its own for each test, since the PostgreSQL is shared.
@pytest.fixture
def name() -> str:
    return f"list é.* {secrets.token_hex(4)}"


def test_a_ring_is_heard_at_the_other_end(bells: tuple[Doorbell, Doorbell], name: str) -> None:
    one, other = bells
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(other.wait, ["unrelated", name], LONG)
        one.ring([name])
        assert waiting.result() is True


def test_a_ring_before_the_wait_is_not_missed(bells: tuple[Doorbell, Doorbell], name: str) -> None:
    one, other = bells
    one.ring([name])
    assert other.wait([name], LONG)


def test_a_ring_is_heard_once(bells: tuple[Doorbell, Doorbell], name: str) -> None:
    one, other = bells
    one.ring([name])
    assert other.wait([name], LONG)
    assert not other.wait([name], 0)


def test_other_lists_stay_silent(bells: tuple[Doorbell, Doorbell], name: str) -> None:
    one, other = bells
    one.ring([f"{name} other"])
    assert other.wait([f"{name} other"], LONG)
    assert not other.wait([name], 0)


def test_every_thread_hears_a_ring() -> None:
    bell = LocalDoorbell()
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(bell.wait, ["l"], LONG) for _ in range(3)]
        bell.ring(["l"])
        assert [each.result() for each in waiting] == [True] * 3


def test_closing_ends_the_wait() -> None:
    bell = LocalDoorbell()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(bell.wait, ["l"], LONG)
        bell.close()
        assert waiting.result() is False


def test_a_lost_connection_is_replaced_and_rings_once(name: str) -> None:
    if not server_is_there():
        pytest.skip("there is no PostgreSQL to test with")
    ours = f"afl test {secrets.token_hex(4)}"
    bell = PostgresDoorbell(f"{url_of('postgres')} application_name='{ours}'")
    assert bell.wait_until_listening(LONG)
    bell.wait([name], 0)
    with psycopg.connect(url_of("postgres"), autocommit=True) as admin:
        admin.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = %s",
            [ours],
        )
    assert bell.wait([name], LONG), "whoever waited looks again when the connection is back"
    bell.close()


def test_rings_are_heard_after_a_restore_has_dropped_the_old_ones(name: str) -> None:
    if not mongo.server_is_there():
        pytest.skip("there is no MongoDB to test with")
    with mongo.empty_database() as url:
        one, other = MongoDoorbell(url), MongoDoorbell(url)
        assert one.wait_until_listening(LONG)
        assert other.wait_until_listening(LONG)
        one.ring([name])
        assert other.wait([name], LONG)
        mongo.drop(url)
        assert other.wait([name], LONG), "whoever waited looks again"
        one.ring([name])
        assert other.wait([name], LONG)
        one.close()
        other.close()


@pytest.mark.parametrize("make", [_postgres, _mongo], ids=["postgres", "mongo"])
def test_closing_it_does_not_wait_for_a_ring(
    make: Callable[[], tuple[Doorbell, Doorbell]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afl.kernel.postgres.doorbell._TURN_SECONDS", 6 * LONG)
    monkeypatch.setattr("afl.kernel.mongo.doorbell._TURN_MILLISECONDS", int(6 * LONG * 1000))
    bells = make()
    begun = time.monotonic()
    for bell in bells:
        bell.close()
    assert time.monotonic() - begun < LONG


@pytest.mark.parametrize(
    "make",
    [
        lambda: PostgresDoorbell("postgresql://127.0.0.1:1/nothing"),
        lambda: NatsDoorbell("nats://127.0.0.1:1"),
        lambda: MongoDoorbell("mongodb://127.0.0.1:1/nothing"),
    ],
    ids=["postgres", "nats", "mongo"],
)
def test_without_a_server_it_is_silent(make: Callable[[], Doorbell]) -> None:
    bell = make()
    bell.ring(["l"])
    assert not bell.wait(["l"], 0)
    bell.close()
