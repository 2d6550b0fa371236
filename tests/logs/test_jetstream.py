"""The road through NATS, on a server that is killed and loses its disk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from afl.kernel.errors import StoreUnavailable
from afl.logs import shipping
from afl.logs.jetstream import JetStreamRoad, Names, connected, with_stream
from afl.logs.keeping import Keeper
from afl.logs.memory_store import MemoryLogStore
from afl.logs.sink import JetStreamSink
from tests.chaos.nats_server import PrivateNats, nats_is_installed
from tests.logs.records import KEY, gaps_of, lines_of, read, slices_of, spool_in

pytestmark = pytest.mark.skipif(not nats_is_installed(), reason="there is no nats-server to start")
LONG = 60.0


@pytest.fixture
def nats(tmp_path: Path) -> Iterator[PrivateNats]:
    with closing(PrivateNats(tmp_path / "nats")) as server:
        yield server


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_lines_come_through_a_server_that_is_killed_and_loses_its_disk(
    nats: PrivateNats, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipping, "_STALL_SECONDS", 1.0)
    monkeypatch.setattr(shipping, "SLICE_BYTES", 4_000)
    store = MemoryLogStore()
    root = tmp_path / "spools"
    spool = spool_in(root)
    keeper = Keeper(root, spool, JetStreamRoad(nats.url, store.home), store)
    keeper.start()
    sink = JetStreamSink(nats.url, store)
    stream = spool.open(KEY)
    written = 0

    def write(count: int) -> None:
        nonlocal written
        for _ in range(count):
            written += 1
            stream.line(b"%d" % written)

    write(2000)
    sink.start()
    wait_for(lambda: bool(lines_of(read(store))))
    nats.kill()
    write(500)
    nats.start()
    wait_for(lambda: len(lines_of(read(store))) == written)
    # with what it has taken and nobody has read
    sink.stop()
    write(500)
    wait_for(lambda: keeper._shipment._sent >= spool.end)
    nats.kill()
    nats.lose_disk()
    nats.start()
    sink = JetStreamSink(nats.url, store)
    sink.start()
    write(500)
    assert keeper.stop(LONG)
    sink.stop()
    shown = read(store)
    assert lines_of(shown) == [b"%d" % number for number in range(1, written + 1)]
    assert gaps_of(shown) == []


def test_a_message_that_is_sent_twice_is_kept_once(nats: PrivateNats, tmp_path: Path) -> None:
    store = MemoryLogStore()
    spool = spool_in(tmp_path / "spools")
    spool.open(KEY).line(b"once")
    parts = slices_of(spool, store)
    road = JetStreamRoad(nats.url, store.home)
    road.send(parts, 0)
    road.send(parts, 0)
    assert asyncio.run(kept(nats.url, Names(store.home()))) == 1
    # but one that is sent on purpose must not be swallowed
    road.send(parts, 1)
    assert asyncio.run(kept(nats.url, Names(store.home()))) == 2
    road.close()
    sink = JetStreamSink(nats.url, store)
    sink.start()
    wait_for(lambda: asyncio.run(kept(nats.url, Names(store.home()))) == 0)
    sink.stop()
    assert lines_of(read(store)) == [b"once"]
    spool.close()
    spool.release()


def test_what_is_no_slice_does_not_stop_the_sink(nats: PrivateNats, tmp_path: Path) -> None:
    store = MemoryLogStore()
    names = Names(store.home())

    async def send_nonsense() -> None:
        client = await connected(nats.url)
        js, _ = await with_stream(client, names)
        await js.publish(names.subject("spool"), b"nonsense")
        await client.close()

    asyncio.run(send_nonsense())
    spool = spool_in(tmp_path / "spools")
    spool.open(KEY).line(b"sense")
    road = JetStreamRoad(nats.url, store.home)
    road.send(slices_of(spool, store), 0)
    road.close()
    sink = JetStreamSink(nats.url, store)
    sink.start()
    wait_for(lambda: lines_of(read(store)) == [b"sense"])
    sink.stop()
    spool.close()
    spool.release()


def test_one_sink_works_and_the_next_takes_over_at_once(nats: PrivateNats, tmp_path: Path) -> None:
    store = MemoryLogStore()
    leader = "one"
    sinks = {
        name: JetStreamSink(nats.url, store, lambda name=name: leader == name)  # type: ignore[misc]
        for name in ("one", "two")
    }
    for sink in sinks.values():
        sink.start()
    wait_for(lambda: sinks["one"].is_working)
    assert not sinks["two"].is_working
    leader = "two"
    wait_for(lambda: sinks["two"].is_working and not sinks["one"].is_working)
    spool = spool_in(tmp_path / "spools")
    spool.open(KEY).line(b"through two")
    road = JetStreamRoad(nats.url, store.home)
    road.send(slices_of(spool, store), 0)
    wait_for(lambda: lines_of(read(store)) == [b"through two"])
    road.close()
    for sink in sinks.values():
        sink.stop()
    spool.close()
    spool.release()


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    store = MemoryLogStore()
    road = JetStreamRoad("nats://127.0.0.1:1", store.home)
    with pytest.raises(StoreUnavailable, match="NATS"):
        road.send([], 0)
    road.close()


async def kept(url: str, names: Names) -> int:
    """How many messages wait."""
    client = await connected(url)
    js, _ = await with_stream(client, names)
    info = await js.stream_info(names.stream)
    await client.close()
    return int(info.state.messages)
