"""Windows of a log: every line once, whatever comes in between, forward and back."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from afl.logs.memory_store import MemoryLogStore
from afl.logs.model import Line, StreamKey
from afl.logs.reading import Wanted
from afl.logs.spool import Spool, StreamWriter, WhenFull
from afl.logs.store import LogStore
from afl.logs.windows import BadCursor, Entry, Windows
from tests.logs.records import KEY, RUN, slices_of, spool_in

#: After every stream was opened: times of a stream never go back.
_LATER = 4_000_000_000_000_000


def _texts(entries: list[Entry]) -> list[str]:
    return [
        entry.shown.item.data.decode() if isinstance(entry.shown.item, Line) else "gap"
        for entry in entries
    ]


def _ship(store: LogStore, spool: Spool) -> None:
    while slices := slices_of(spool, store):
        store.append(slices)


def _written(store: LogStore, folder: Path, seed: int, streams: int, lines: int) -> list[str]:
    """Random lines of several streams, in the order of their times."""
    random = Random(seed)
    spool = spool_in(folder)
    writers = [
        spool.open(StreamKey(RUN, f"all/{number}", 1, "stdout")) for number in range(streams)
    ]
    texts = []
    for number in range(lines):
        text = f"line {number}"
        random.choice(writers).line(text.encode(), time_us=_LATER + number * 10, level=20)
        texts.append(text)
        if random.random() < 0.05:
            _ship(store, spool)
    for writer in writers:
        writer.close()
    spool.close()
    _ship(store, spool)
    return texts


@pytest.mark.parametrize("seed", range(8))
def test_pages_forward_and_back_have_every_line_once(seed: int, tmp_path: Path) -> None:
    store = MemoryLogStore()
    texts = _written(store, tmp_path, seed, streams=1 + seed, lines=500)
    _check_pages(store, texts, size=1 + seed * 13)


def test_pages_of_every_store_have_every_line_once(store: LogStore, tmp_path: Path) -> None:
    texts = _written(store, tmp_path, 3, streams=4, lines=300)
    _check_pages(store, texts, size=17)
    # of all runs it is the same, where there is one run
    tail = Windows(store, None).tail(1000)
    assert _texts(tail.entries) == texts


def _check_pages(store: LogStore, texts: list[str], size: int) -> None:
    windows = Windows(store, RUN)
    forward: list[str] = []
    cursor = None
    while entries := (window := windows.later(cursor, size)).entries:
        assert len(entries) <= size
        forward += _texts(entries)
        cursor = window.next
    assert forward == texts
    window = windows.tail(size)
    back = _texts(window.entries)
    while window.before is not None:
        window = windows.earlier(window.before, size)
        back = _texts(window.entries) + back
    assert back == texts


def test_behind_the_tail_comes_what_was_not_there_even_if_it_is_older(tmp_path: Path) -> None:
    store = MemoryLogStore()
    early, late = spool_in(tmp_path / "a"), spool_in(tmp_path / "b")
    slow = early.open(StreamKey(RUN, "slow", 1, "stdout"))
    quick = late.open(StreamKey(RUN, "quick", 1, "stdout"))
    quick.line(b"new", time_us=_LATER + 1_000)
    quick.close()
    late.close()
    _ship(store, late)
    windows = Windows(store, RUN)
    tail = windows.tail(10)
    assert _texts(tail.entries) == ["new"]
    slow.line(b"old, and late", time_us=_LATER)
    slow.close()
    early.close()
    _ship(store, early)
    behind = windows.later(tail.next, 10)
    assert _texts(behind.entries) == ["old, and late"]
    assert _texts(windows.later(behind.next, 10).entries) == []
    assert _texts(windows.tail(10).entries) == ["old, and late", "new"]


def test_a_window_has_what_is_wanted_and_goes_on_behind_what_is_not(tmp_path: Path) -> None:
    store = MemoryLogStore()
    _written(store, tmp_path, 3, streams=3, lines=300)
    wanted = Wanted(pattern=re.compile(r" \d*7$"))
    windows = Windows(store, RUN, wanted)
    found: list[str] = []
    cursor = None
    while entries := (window := windows.later(cursor, 4)).entries:
        found += _texts(entries)
        cursor = window.next
    assert found == [f"line {number}" for number in range(300) if number % 10 == 7]
    assert _texts(windows.tail(2).entries) == ["line 287", "line 297"]


def test_gaps_are_entries(tmp_path: Path) -> None:
    store = MemoryLogStore()
    spool = spool_in(tmp_path, most_bytes=4_000)
    writer: StreamWriter = spool.open(KEY, WhenFull.DROP)
    for _ in range(60):
        writer.line(b"y" * 100)
    writer.close()
    spool.close()
    _ship(store, spool)
    windows = Windows(store, RUN)
    forward = _texts(windows.later(None, 100).entries)
    assert forward.count("gap") == 1
    assert _texts(windows.tail(100).entries) == forward
    names = [entry.name for entry in windows.tail(100).entries]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("cursor", ["x", "AAAA", "!!", "a" * 5000, ""])
def test_a_cursor_that_is_none_is_refused(cursor: str) -> None:
    with pytest.raises(BadCursor):
        Windows(MemoryLogStore(), RUN).later(cursor, 10)
    with pytest.raises(BadCursor):
        Windows(MemoryLogStore(), RUN).earlier(cursor, 10)
