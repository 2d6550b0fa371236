"""The spool: what it has taken is in the files, whatever happens to the process."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from afl.logs.leftovers import adopt
from afl.logs.memory_store import MemoryLogStore
from afl.logs.model import LONGEST_LINE, SPOOL_FULL, Gap, Line, StreamKey
from afl.logs.redacting import Redactor
from afl.logs.segments import SegmentWriter, segments_of
from afl.logs.spool import Spool, SpoolClosed, WhenFull, locked
from tests.logs.records import ERRORS, KEY, gaps_of, lines_of, read, slices_at, slices_of, spool_in

LONG = 30.0


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    made = spool_in(tmp_path)
    yield made
    made.close()
    made.release()


def stored(spool: Spool) -> MemoryLogStore:
    store = MemoryLogStore()
    store.append(slices_of(spool, store))
    return store


def test_lines_of_several_streams_are_told_apart(spool: Spool) -> None:
    out, err = spool.open(KEY), spool.open(ERRORS)
    for number in range(3):
        out.line(b"out %d" % number)
        err.line(b"err %d" % number, level=40)
    out.close()
    shown = read(stored(spool))
    assert lines_of([each for each in shown if each.key == KEY]) == [b"out 0", b"out 1", b"out 2"]
    assert lines_of([each for each in shown if each.key == ERRORS]) == [
        b"err 0",
        b"err 1",
        b"err 2",
    ]
    assert {each.item.level for each in shown if isinstance(each.item, Line)} == {0, 40}


def test_many_threads_write_dense_numbers(spool: Spool) -> None:
    shared = spool.open(KEY)

    def write(thread: int) -> None:
        own = spool.open(StreamKey("own", str(thread), 1, "log"))
        for number in range(200):
            own.line(b"%d" % number)
            shared.line(b"%d %d" % (thread, number))
        own.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    shared.close()
    store = stored(spool)
    lines = [each.item for each in read(store)]
    assert [line.seq for line in lines if isinstance(line, Line)] == [*range(1, 1601)]
    for thread in range(8):
        its = [line for line in lines_of(read(store)) if line.startswith(b"%d " % thread)]
        assert its == [b"%d %d" % (thread, number) for number in range(200)]
    assert len(read(store, "own")) == 1600


def test_a_long_line_is_split_and_marked(spool: Spool) -> None:
    stream = spool.open(KEY)
    stream.line(b"x" * (2 * LONGEST_LINE + 1))
    stream.line(b"y", partial=True)
    stream.line(b"z")
    stream.close()
    items = [each.item for each in read(stored(spool))]
    assert [(len(each.data), each.partial) for each in items if isinstance(each, Line)] == [
        (LONGEST_LINE, True),
        (LONGEST_LINE, True),
        (1, False),
        (1, True),
        (1, False),
    ]


def test_secrets_do_not_touch_the_disk(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "worker", redactor=Redactor(["correct horse battery"]))
    stream = spool.open(KEY)
    stream.line(b"it is correct horse battery!")
    stream.line(b"it is correct ho", partial=True)
    stream.line(b"rse battery again", partial=True)
    stream.line(b" and correct", partial=True)
    stream.close()
    store = stored(spool)
    spool.close()
    spool.release()
    assert b"".join(lines_of(read(store))) == (
        b"it is [redacted]!it is [redacted] again and correct"
    )
    for path in tmp_path.rglob("*.seg"):
        assert b"horse" not in path.read_bytes()


def test_times_of_a_stream_never_go_back(spool: Spool) -> None:
    stream = spool.open(KEY)
    ahead = spool.now_us() + 60_000_000
    stream.line(b"a", time_us=ahead)
    stream.line(b"b", time_us=ahead - 5_000_000)
    times = [each.item.time_us for each in read(stored(spool))]
    assert times == [ahead, ahead]


def test_a_full_spool_makes_writers_wait_until_there_is_room(tmp_path: Path) -> None:
    spool = spool_in(tmp_path, most_bytes=20_000, segment_bytes=4_000)
    stream = spool.open(KEY)
    written = threading.Semaphore(0)

    def write() -> None:
        for number in range(400):
            stream.line(b"%d " % number + b"x" * 100)
            written.release()
        stream.close()

    thread = threading.Thread(target=write)
    thread.start()
    store = MemoryLogStore()
    for _ in range(100):
        assert written.acquire(timeout=LONG)
    while thread.is_alive():
        assert spool.end - segments_of(spool.folder)[0][0] <= 20_000 + 1_000
        store.append(slices_of(spool, store))
        spool.free(store.position(spool.id))
        thread.join(0.01)
    store.append(slices_of(spool, store))
    spool.close()
    spool.release()
    shown = read(store)
    assert gaps_of(shown) == []
    assert [line.split()[0] for line in lines_of(shown)] == [b"%d" % n for n in range(400)]


def test_a_stream_that_drops_leaves_a_gap(tmp_path: Path) -> None:
    spool = spool_in(tmp_path, most_bytes=5_000, segment_bytes=1_000)
    stream = spool.open(KEY, WhenFull.DROP)
    store = MemoryLogStore()
    for number in range(1, 101):
        stream.line(b"%d " % number + b"x" * 200)
    store.append(slices_of(spool, store))
    spool.free(store.position(spool.id))
    stream.line(b"after")
    stream.close()
    store.append(slices_of(spool, store))
    spool.close()
    spool.release()
    shown = read(store)
    (gap,) = gaps_of(shown)
    kept = len(lines_of(shown)) - 1
    assert 5 < kept < 30
    assert (gap.first, gap.last, gap.reason) == (kept + 1, 100, SPOOL_FULL)
    assert lines_of(shown)[-1] == b"after"


def test_who_is_not_wanted_any_more_does_not_wait_for_room(tmp_path: Path) -> None:
    spool = spool_in(tmp_path, most_bytes=2_000)
    cancelled = threading.Event()
    stream = spool.open(KEY, until=cancelled)
    cancelled.set()
    for _ in range(50):
        stream.line(b"x" * 100)
    stream.close()
    spool.close()
    spool.release()
    assert [gap.last for gap in gaps_of(read(stored(spool)))] == [50]


def test_a_disk_without_room_is_a_full_spool(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = spool.open(KEY, WhenFull.DROP)
    stream.line(b"before")
    is_full = True
    append = SegmentWriter.append

    def full(self: SegmentWriter, data: bytes) -> None:
        if is_full:
            raise OSError(errno.ENOSPC, "full")
        append(self, data)

    monkeypatch.setattr(SegmentWriter, "append", full)
    stream.line(b"lost")
    other = spool.open(ERRORS, WhenFull.DROP)
    other.line(b"lost too")
    other.close()
    is_full = False
    stream.line(b"after")
    stream.close()
    shown = read(stored(spool))
    assert lines_of(shown) == [b"before", b"after"]
    assert sorted((each.key.name, each.item.first) for each in shown if type(each.item) is Gap) == [
        ("stderr", 1),
        ("stdout", 2),
    ]


def test_half_a_record_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = SegmentWriter(tmp_path)
    writer.begin(b"header")
    write = os.write

    def half(file: int, data: bytes) -> int:
        if len(data) == 10:
            return write(file, data[:5])
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(OSError, match="full"):
        writer.append(b"0123456789")
    monkeypatch.undo()
    writer.append(b"abc")
    writer.close()
    assert segments_of(tmp_path)[0][1].read_bytes() == b"headerabc"


def test_a_torn_tail_is_left_out_and_the_rest_is_shipped(tmp_path: Path) -> None:
    spool = spool_in(tmp_path, segment_bytes=2_000)
    stream = spool.open(KEY)
    for number in range(50):
        stream.line(b"%d" % number + b"x" * 100)
    spool.sync()
    spool.release()  # as if the process were gone
    last = segments_of(spool.folder)[-1][1]
    with last.open("ab") as file:
        file.write(b"\x30\0\0\0torn")
    (left,) = adopt(tmp_path, own="")
    assert left.end == spool.end
    store = MemoryLogStore()
    store.append(slices_at(left.id, left.reader, left.end, store))
    assert len(lines_of(read(store))) == 50
    left.remove()
    assert list(tmp_path.iterdir()) == []
    spool._syncing.stop()


def test_records_that_rot_on_the_disk_become_a_gap(tmp_path: Path) -> None:
    spool = spool_in(tmp_path, segment_bytes=2_000)
    stream = spool.open(KEY)
    for number in range(1, 61):
        stream.line(b"%d" % number + b"x" * 100)
    stream.close()
    _, second = segments_of(spool.folder)[1]
    data = bytearray(second.read_bytes())
    data[len(data) // 2] ^= 1
    second.write_bytes(data)
    shown = read(stored(spool))
    (gap,) = gaps_of(shown)
    assert gap.last is not None
    assert len(lines_of(shown)) == 60 - (gap.last - gap.first + 1)
    spool.close()
    spool.release()


def test_a_folder_has_one_process(spool: Spool, tmp_path: Path) -> None:
    assert locked(spool.folder) is None
    assert adopt(tmp_path, own="") == []
    script = (
        "import sys; from pathlib import Path; from afl.logs.leftovers import adopt; "
        "print(len(adopt(Path(sys.argv[1]), own='')))"
    )
    other = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert other.stdout == "0\n"


def test_kill_9_loses_nothing_that_was_taken(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from afl.logs.spool import Spool; from afl.logs.model import StreamKey\n"
        "stream = Spool(Path(sys.argv[1]), 'w').open(StreamKey('run-1', '0/build', 1, 'stdout'))\n"
        "n = 0\n"
        "while True:\n"
        "    n += 1\n"
        "    stream.line(b'%d' % n)\n"
        "    print(n, flush=True)\n"
    )
    doomed = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert doomed.stdout is not None
    for _ in range(500):
        doomed.stdout.readline()
    doomed.kill()
    # what it said last, without half a line
    told = int(["500", *doomed.communicate()[0].rpartition("\n")[0].split()][-1])
    (left,) = adopt(tmp_path, own="")
    store = MemoryLogStore()
    while store.position(left.id) < left.end:
        store.append(slices_at(left.id, left.reader, left.end, store))
    lines = lines_of(read(store))
    assert lines == [b"%d" % number for number in range(1, len(lines) + 1)]
    assert len(lines) >= told
    left.release()


def test_a_closed_spool_refuses(tmp_path: Path) -> None:
    spool = spool_in(tmp_path)
    stream = spool.open(KEY)
    spool.close()
    with pytest.raises(SpoolClosed):
        stream.line(b"late")
    with pytest.raises(SpoolClosed):
        spool.open(ERRORS)
    stream.close()
    spool.release()
