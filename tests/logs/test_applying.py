"""Whatever is sent again, in whatever pieces and order, each line is stored once and in order."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from afl.logs.codec import line_bytes
from afl.logs.frames import FrameKind, Slicer, close_frame, frames_in, line_frame, open_frame
from afl.logs.memory_store import MemoryLogStore
from afl.logs.model import (
    LOST_ON_DISK,
    WORKER_DIED,
    Closed,
    Opened,
    Slice,
    StreamKey,
)
from tests.logs.records import KEY, RUN, gaps_of, lines_of, read, slices_of, spool_in

STREAMS = [f"{number:032x}" for number in range(1, 4)]
KEYS = {stream: StreamKey(RUN, f"0/{stream[-1]}", 1, "log") for stream in STREAMS}


def spool_bytes(choices: list[int]) -> bytes:
    """Records of three streams: each choice is the stream of the next line."""
    records = [open_frame(Opened(stream, KEYS[stream], 0)) for stream in STREAMS]
    counts = dict.fromkeys(STREAMS, 0)
    for time_us, choice in enumerate(choices):
        stream = STREAMS[choice]
        counts[stream] += 1
        line = line_bytes(time_us, 0, False, b"%d" % counts[stream])
        records.append(line_frame(bytes.fromhex(stream), counts[stream], line))
    records += [close_frame(Closed(stream, counts[stream], None, 99)) for stream in STREAMS]
    return b"".join(records)


def sliced(data: bytes, cuts: list[int], start: int = 0) -> list[Slice]:
    """Slices that end after the records in which the cuts are, from a position on."""
    ends = [record.end for record in frames_in(data)]
    slicer = Slicer("spool", "worker")
    slicer.learn(frames_in(data[:start]))
    places = sorted({end for cut in cuts if (end := ends[cut % len(ends)]) > start} | {ends[-1]})
    slices = []
    for place in places:
        slices.append(slicer.slice(frames_in(data[start:place]), start, place))
        start = place
    return slices


CUTS = st.lists(st.integers(0, 60), max_size=6)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=40), st.lists(CUTS, max_size=4), st.data())
def test_each_line_is_stored_once_and_in_order(
    choices: list[int], sendings: list[list[int]], data: st.DataObject
) -> None:
    records = spool_bytes(choices)
    store = MemoryLogStore()
    on_the_way = [part for cuts in sendings for part in sliced(records, cuts)]
    for part in data.draw(st.permutations(on_the_way)):
        store.append([part])
    # whoever ships goes on from where the store is, until all is there
    rest = (
        sliced(records, [], store.position("spool"))
        if store.position("spool") < len(records)
        else []
    )
    store.append(rest)
    assert store.position("spool") == len(records)
    shown = read(store)
    assert gaps_of(shown) == []
    for number, stream in enumerate(STREAMS):
        its = lines_of([each for each in shown if each.key == KEYS[stream]])
        assert its == [b"%d" % n for n in range(1, choices.count(number) + 1)]
    assert all(stream.closed_us == 99 for stream in store.streams(RUN))


def test_what_comes_before_its_turn_waits() -> None:
    first, second, third = sliced(spool_bytes([0, 1, 2, 0]), [4, 5])
    store = MemoryLogStore()
    assert store.append([second, third]) == {"spool": 0}
    assert store.append([first, third]) == {"spool": first.end}
    assert store.append([second, third]) == {"spool": third.end}


def test_a_hole_in_a_stream_becomes_a_gap() -> None:
    records = spool_bytes([0, 0, 0, 0, 1])
    kept = [
        record for record in frames_in(records) if (record.kind, record.seq) != (FrameKind.LINE, 2)
    ]
    part = Slicer("spool", "worker").slice(kept, 0, len(records))
    store = MemoryLogStore()
    store.append([part])
    shown = read(store)
    assert [(gap.first, gap.last, gap.reason) for gap in gaps_of(shown)] == [(2, 2, LOST_ON_DISK)]
    assert lines_of([each for each in shown if each.key.path == "0/1"]) == [b"1", b"3", b"4"]


def test_lines_that_are_missing_at_the_end_become_a_gap() -> None:
    records = spool_bytes([0, 0, 0])
    kept = [record for record in frames_in(records) if record.seq < 2]
    store = MemoryLogStore()
    store.append([Slicer("spool", "worker").slice(kept, 0, len(records))])
    assert [(gap.first, gap.last) for gap in gaps_of(read(store))] == [(2, 3)]


def test_lines_that_come_after_their_stream_was_given_up_are_kept(tmp_path: Path) -> None:
    """The disk of a worker lost what NATS still had, and another has said that the end is lost."""
    first, second, third = sliced(spool_bytes([0, 0, 0]), [3, 4])
    store = MemoryLogStore()
    store.append([first])
    other = spool_in(tmp_path)
    other.declare_lost([Opened(STREAMS[0], KEYS[STREAMS[0]], 0)])
    store.append(slices_of(other, store))
    other.close()
    other.release()
    assert [gap.reason for gap in gaps_of(read(store))] == [WORKER_DIED]
    store.append([second, third])
    shown = read(store)
    assert lines_of(shown) == [b"1", b"2", b"3"]
    assert [gap.last for gap in gaps_of(shown)] == [None]


def test_lines_whose_stream_is_not_known_are_kept(tmp_path: Path) -> None:
    spool = spool_in(tmp_path)
    stream = spool.open(KEY)
    stream.line(b"whose?")
    (part,) = slices_of(spool, MemoryLogStore())
    kept = frames_in((spool.folder / f"{0:020}.seg").read_bytes())
    lines = [record for record in kept if record.kind == FrameKind.LINE]
    unknown = Slicer(part.spool, part.worker).slice(lines, 0, part.end)
    store = MemoryLogStore()
    store.append([unknown])
    assert lines_of(read(store, run="")) == [b"whose?"]
    spool.close()
    spool.release()
