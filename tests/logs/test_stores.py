"""The stores keep the same promises: in memory, in PostgreSQL and in MongoDB."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from importlib.resources import files
from pathlib import Path

import psycopg
import pytest

from afl.app import migrating
from afl.kernel.errors import BadRequest
from afl.kernel.postgres import migrate as kernel_migrate
from afl.logs.memory_store import MemoryLogStore
from afl.logs.model import FIRST, StreamKey
from afl.logs.postgres.statements import SQL
from afl.logs.postgres_store import PostgresLogStore
from afl.logs.reading import SILENT_US, Reader, Wanted
from afl.logs.spool import WhenFull
from afl.logs.store import LogStore
from tests.kernel.postgres.databases import empty_database, server_is_there
from tests.kernel.postgres.test_migrate import catalogue
from tests.logs.records import ERRORS, KEY, RUN, gaps_of, lines_of, read, slices_of, spool_in

needs_postgres = pytest.mark.skipif(not server_is_there(), reason="no PostgreSQL to test with")


def test_what_is_appended_is_read_with_gaps_and_ends(store: LogStore, tmp_path: Path) -> None:
    spool = spool_in(tmp_path, most_bytes=4_000)
    out, err = spool.open(KEY), spool.open(ERRORS, WhenFull.DROP)
    out.line(b"\xff\x00 any bytes")
    for _ in range(60):
        err.line(b"y" * 100, level=40)
    out.close()
    err.close()
    spool.close()
    spool.release()
    parts = slices_of(spool, store)
    assert store.append(parts) == {spool.id: spool.end} == {spool.id: store.position(spool.id)}
    assert store.append(parts) == {spool.id: spool.end}  # the same again does no harm
    shown = read(store)
    assert lines_of(shown)[0] == b"\xff\x00 any bytes"
    assert (
        len(lines_of(shown)) + sum((gap.last or 0) - gap.first + 1 for gap in gaps_of(shown)) == 61
    )
    streams = {stream.key: stream for stream in store.streams(RUN)}
    assert {key: stream.next_seq for key, stream in streams.items()} == {KEY: 2, ERRORS: 61}
    assert all(stream.closed_us is not None for stream in streams.values())
    assert store.position("another") == 0
    assert store.streams("another") == []


def test_a_reader_is_shown_what_it_wants(store: LogStore, tmp_path: Path) -> None:
    spool = spool_in(tmp_path)
    out, err = spool.open(KEY), spool.open(ERRORS)
    out.line(b"one", time_us=1_000, level=20)
    err.line(b"two", time_us=spool.now_us() + 1_000_000, level=40)
    store.append(slices_of(spool, store))
    spool.close()
    spool.release()

    def shown(wanted: Wanted) -> list[bytes]:
        return lines_of(list(Reader(store, RUN, wanted).news()))

    assert shown(Wanted()) == [b"one", b"two"]
    assert shown(Wanted(name="stdout")) == [b"one"]
    assert shown(Wanted(path="0")) == shown(Wanted(path="0/build")) == [b"one", b"two"]
    assert shown(Wanted(path="0/bu")) == []
    assert shown(Wanted(level=30)) == [b"two"]
    assert shown(Wanted(since_us=err._last_us)) == [b"two"]
    assert shown(Wanted(pattern=re.compile("o$"))) == [b"two"]


def test_from_stored_to_live_nothing_is_missing_or_doubled(store: LogStore, tmp_path: Path) -> None:
    spool = spool_in(tmp_path)
    streams = [spool.open(KEY), spool.open(ERRORS)]
    reader = Reader(store, RUN)
    seen: list[tuple[str, int]] = []
    for round_ in range(30):
        for number, stream in enumerate(streams):
            for _ in range(1 + (round_ * 7 + number) % 5):
                stream.line(b"x")
        if round_ % 3 != 2:
            store.append(slices_of(spool, store))
        if round_ % 2:
            seen += [(each.key.name, each.item.seq) for each in reader.news()]  # type: ignore[union-attr]
    spool.close()
    spool.release()
    store.append(slices_of(spool, store))
    seen += [(each.key.name, each.item.seq) for each in reader.news()]  # type: ignore[union-attr]
    for stream in streams:
        its = [seq for name, seq in seen if name == stream.opened.key.name]
        assert its == [*range(FIRST, stream._next)]
    assert reader.is_complete
    assert list(reader.news()) == []


def test_a_reader_beside_a_writer_sees_each_line_once(store: LogStore, tmp_path: Path) -> None:
    spool = spool_in(tmp_path)
    streams = [spool.open(key) for key in (KEY, ERRORS)]

    def write() -> None:
        for _ in range(60):
            for stream in streams:
                stream.line(b"x")
            store.append(slices_of(spool, store))

    reader = Reader(store, RUN)
    seen: list[tuple[str, int]] = []
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        is_last = False
        while not is_last:
            is_last = writing.done()
            seen += [(each.key.name, each.item.seq) for each in reader.news()]  # type: ignore[union-attr]
        writing.result()
    spool.close()
    spool.release()
    for stream in streams:
        its = [seq for name, seq in seen if name == stream.opened.key.name]
        assert its == [*range(FIRST, FIRST + 60)]


def test_a_stream_whose_worker_is_silent_is_shown_as_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryLogStore()
    spool = spool_in(tmp_path)
    spool.open(KEY).line(b"and then")
    store.append(slices_of(spool, store))
    reader = Reader(store, RUN)
    assert gaps_of(list(reader.news())) == []
    complete = [reader.is_complete]
    later = store.now_us() + SILENT_US
    monkeypatch.setattr(store, "now_us", lambda: later)
    (gap,) = gaps_of(list(reader.news()))
    assert gap.last is None
    assert "not heard of" in gap.reason
    assert [*complete, reader.is_complete] == [False, True]
    spool.close()
    spool.release()


def test_old_streams_are_rotated_away(store: LogStore, tmp_path: Path) -> None:
    spool = spool_in(tmp_path)
    for number in range(3):
        stream = spool.open(KEY)
        stream.line(b"%d" % number)
        stream.close()
    store.append(slices_of(spool, store))
    spool.close()
    spool.release()
    assert store.rotate(timedelta(days=1)) == 0
    assert store.rotate(timedelta(days=-1), limit=2) == 2
    assert store.rotate(timedelta(days=-1)) == 1
    assert read(store) == []


def test_many_appenders_of_one_spool_store_each_line_once(store: LogStore, tmp_path: Path) -> None:
    spool = spool_in(tmp_path)
    stream = spool.open(KEY)
    with ThreadPoolExecutor(4) as pool:
        ways = []
        for number in range(200):
            stream.line(b"%d" % number)
            if number % 10 == 0:
                # each from its own idea of where the store is
                ways += [pool.submit(store.append, slices_of(spool, store)) for _ in range(3)]
        stream.close()
        for way in ways:
            way.result()
        store.append(slices_of(spool, store))
        assert lines_of(read(store)) == [b"%d" % number for number in range(200)]
    spool.close()
    spool.release()


def test_gaps_can_be_asked_for(
    postgres_url: str, postgres_store: PostgresLogStore, tmp_path: Path
) -> None:
    spool = spool_in(tmp_path, most_bytes=3_000)
    stream = spool.open(KEY, WhenFull.DROP)
    for _ in range(60):
        stream.line(b"x" * 100)
    stream.close()
    lost = spool.open(ERRORS)
    spool.declare_lost([lost.opened])
    postgres_store.append(slices_of(spool, postgres_store))
    with psycopg.connect(postgres_url) as connection:
        rows = connection.execute(
            "select name, first_seq, last_seq, reason from afl.log_gap order by name"
        ).fetchall()
    spool.close()
    spool.release()
    assert rows[0] == ("stderr", 1, None, "the worker died")
    assert rows[1][2:] == (60, "the spool of the worker was full")


@needs_postgres
def test_the_migrations_come_to_what_schema_sql_says() -> None:
    with empty_database() as one, empty_database() as other:
        kernel_migrate.migrate(one, kernel_migrate.read_migrations("afl.logs.postgres"))
        kernel_migrate.migrate(other)
        with psycopg.connect(other) as connection:
            connection.execute(files("afl.logs.postgres").joinpath("schema.sql").read_bytes())
        assert catalogue(one) == catalogue(other)


def test_the_numbers_have_no_gaps() -> None:
    own = [each.number for each in migrating.migrations() if 400 < each.number <= 500]
    assert own == [*range(401, 401 + len(own))]


@pytest.mark.parametrize("name", SQL)
def test_every_statement_says_what_it_is_for(name: str) -> None:
    assert re.match(r"-- [A-Z][^\n]+[.;:,\w]\n", SQL[name].decode())


@needs_postgres
def test_a_database_without_the_tables_says_what_to_do() -> None:
    with (
        empty_database() as url,
        PostgresLogStore.connect(url) as store,
        pytest.raises(BadRequest, match="afl db migrate"),
    ):
        store.position("spool")


def test_any_name_can_be_stored(store: LogStore, tmp_path: Path) -> None:
    spool = spool_in(tmp_path)
    spool.open(StreamKey(RUN, "0/\0\ud800", 1, "log")).line(b"here")
    store.append(slices_of(spool, store))
    spool.close()
    spool.release()
    assert lines_of(read(store)) == [b"here"]
