"""Connections that are used all the time stay out of the pool, and nobody misses one."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from afl.kernel.errors import StoreUnavailable
from afl.kernel.postgres.database import Database

_PID = b"select pg_backend_pid()"


def _pid(database: Database) -> int:
    return int(database.rows(_PID, {})[0][0])


def _connections(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "select count(*) from pg_stat_activity where datname = current_database() "
            "and application_name = 'afl'"
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_more_threads_than_connections_all_get_one(url: str) -> None:
    database = Database(url, max_size=2, timeout_seconds=30)
    with ThreadPoolExecutor(8) as threads:
        pids = {*threads.map(lambda _: _pid(database), range(400))}
    database.close()
    assert 1 <= len(pids) <= 2


def test_what_is_idle_goes_back_to_the_pool_in_the_end(url: str) -> None:
    database = Database(url, max_size=4)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: database.rows(b"select pg_sleep(0.1)", {}), range(4)))
    time.sleep(1.1)
    _pid(database)
    assert not database._pool._at_hand
    database.close()


def test_closing_leaves_no_connection(url: str) -> None:
    database = Database(url, max_size=4)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: _pid(database), range(40)))
    database.close()
    with pytest.raises(StoreUnavailable):
        _pid(database)
    deadline = time.monotonic() + 10
    while _connections(url) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _connections(url) == 0


def test_a_lost_connection_is_replaced(url: str) -> None:
    database = Database(url, max_size=1)
    pid = _pid(database)
    with psycopg.connect(url) as connection:
        connection.execute("select pg_terminate_backend(%s, 5000)", [pid])
    with pytest.raises(StoreUnavailable):
        _pid(database)
    assert _pid(database) != pid
    database.close()
