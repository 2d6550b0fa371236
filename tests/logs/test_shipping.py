"""Shipping: nothing is freed before it is stored, and roads may lose what they have accepted."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from afl.kernel.errors import StoreUnavailable
from afl.logs import shipping
from afl.logs.keeping import Keeper
from afl.logs.memory_store import MemoryLogStore
from afl.logs.model import WORKER_DIED, Slice
from afl.logs.segments import segments_of
from afl.logs.shipping import DirectRoad, Shipment
from afl.logs.spool import Spool
from tests.logs.records import ERRORS, KEY, gaps_of, lines_of, read, spool_in

LONG = 30.0


class LossyRoad:
    """Loses every other sending, as a server does that loses its disk; some fail."""

    def __init__(self, store: MemoryLogStore) -> None:
        self._store = store
        self.sendings = 0
        self.agains: set[int] = set()

    def send(self, slices: Sequence[Slice], again: int) -> None:
        self.sendings += 1
        self.agains.add(again)
        if self.sendings % 5 == 0:
            raise StoreUnavailable("away")
        if self.sendings % 2 == 0:
            self._store.append(slices)

    def close(self) -> None:
        pass


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def write(spool: Spool, count: int) -> None:
    stream = spool.open(KEY)
    for number in range(count):
        stream.line(b"%d " % number + b"x" * 100)
    stream.close()


def numbers(store: MemoryLogStore) -> list[int]:
    return [int(line.split()[0]) for line in lines_of(read(store))]


def test_all_is_stored_and_the_folder_goes(tmp_path: Path) -> None:
    store = MemoryLogStore()
    spool = spool_in(tmp_path, segment_bytes=10_000)
    keeper = Keeper(tmp_path, spool, DirectRoad(store), store)
    keeper.start()
    write(spool, 2000)
    wait_for(lambda: len(segments_of(spool.folder)) == 1)  # what is stored is freed
    assert keeper.unstored < 10_000
    assert keeper.stop(LONG)
    assert numbers(store) == [*range(2000)]
    assert list(tmp_path.iterdir()) == []


def test_a_road_may_lose_what_it_has_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipping, "_STALL_SECONDS", 0.1)
    monkeypatch.setattr(shipping, "_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(shipping, "SLICE_BYTES", 5_000)
    store = MemoryLogStore()
    spool = spool_in(tmp_path, segment_bytes=20_000)
    road = LossyRoad(store)
    keeper = Keeper(tmp_path, spool, road, store)
    keeper.start()
    write(spool, 1500)
    assert keeper.stop(LONG)
    assert numbers(store) == [*range(1500)]
    # what is sent again is not to be taken for a repetition
    assert len(road.agains) > 1


def test_what_is_accepted_and_not_stored_is_not_freed(tmp_path: Path) -> None:
    class Swallowing:
        def send(self, slices: Sequence[Slice], again: int) -> None: ...

        def close(self) -> None: ...

    store = MemoryLogStore()
    spool = spool_in(tmp_path, segment_bytes=5_000)
    keeper = Keeper(tmp_path, spool, Swallowing(), store)
    keeper.start()
    write(spool, 500)
    before = segments_of(spool.folder)
    assert not keeper.stop(0.5)
    assert segments_of(spool.folder) == before
    # the next worker finds all of it
    other = spool_in(tmp_path)
    heir = Keeper(tmp_path, other, DirectRoad(store), store, search_seconds=0)
    heir.start()
    wait_for(lambda: not spool.folder.exists())
    assert heir.stop(LONG)
    assert numbers(store) == [*range(500)]
    assert gaps_of(read(store)) == []


def test_streams_of_a_dead_worker_end_in_a_gap(tmp_path: Path) -> None:
    dead = spool_in(tmp_path, segment_bytes=1_000)
    cut, silent, whole = dead.open(KEY), dead.open(ERRORS), dead.open(KEY)
    whole.line(b"whole")
    whole.close()
    for number in range(50):
        cut.line(b"%d" % number)
    dead.sync()
    store = MemoryLogStore()
    road = DirectRoad(store)
    # some of it was shipped and freed before it died
    Shipment(dead.id, "dead", dead.reader, road, store).step(dead.end // 2)
    dead.free(store.position(dead.id))
    assert silent.opened.key == ERRORS
    dead._syncing.stop()
    dead.release()  # as if the process were gone
    spool = spool_in(tmp_path)
    keeper = Keeper(tmp_path, spool, road, store, search_seconds=0)
    keeper.start()
    wait_for(lambda: not dead.folder.exists())
    assert keeper.stop(LONG)
    shown = read(store)
    assert sorted(lines_of(shown)) == sorted([b"whole", *(b"%d" % n for n in range(50))])
    gaps = [(each.key.name, each.item) for each in shown if each.item in gaps_of(shown)]
    assert sorted((name, gap.first, gap.last, gap.reason) for name, gap in gaps) == [
        ("stderr", 1, None, WORKER_DIED),
        ("stdout", 51, None, WORKER_DIED),
    ]


def test_what_a_dead_worker_has_left_is_left_again_by_one_that_ends(tmp_path: Path) -> None:
    dead = spool_in(tmp_path)
    dead.open(KEY).line(b"left")
    dead._syncing.stop()
    dead.release()
    store = MemoryLogStore()
    # it never comes to look, as if it were told to end right away
    keeper = Keeper(tmp_path, spool_in(tmp_path), DirectRoad(store), store, search_seconds=0)
    write(keeper.spool, 10)
    assert keeper.stop(LONG)
    assert numbers(store) == [*range(10)]
    assert dead.folder.exists()


def test_a_worker_does_not_take_the_spool_of_one_that_lives(tmp_path: Path) -> None:
    store = MemoryLogStore()
    one, two = spool_in(tmp_path), spool_in(tmp_path)
    keepers = [
        Keeper(tmp_path, spool, DirectRoad(store), store, search_seconds=0) for spool in (one, two)
    ]
    for keeper in keepers:
        keeper.start()
    streams = [spool.open(KEY) for spool in (one, two)]
    for stream in streams:
        stream.line(b"alive")
    wait_for(lambda: len(lines_of(read(store))) == 2)
    assert all(keeper.stop(LONG) for keeper in keepers)
    assert gaps_of(read(store)) == []


def test_a_store_that_is_away_costs_time_and_nothing_else(tmp_path: Path) -> None:
    class Away(MemoryLogStore):
        is_away = True

        def append(self, slices: Sequence[Slice]) -> dict[str, int]:
            self._check()
            return super().append(slices)

        def position(self, spool: str) -> int:
            self._check()
            return super().position(spool)

        def _check(self) -> None:
            if self.is_away:
                raise StoreUnavailable("away")

    store = Away()
    spool = spool_in(tmp_path)
    keeper = Keeper(tmp_path, spool, DirectRoad(store), store)
    keeper.start()
    write(spool, 100)
    store.is_away = False
    assert keeper.stop(LONG)
    assert numbers(store) == [*range(100)]
