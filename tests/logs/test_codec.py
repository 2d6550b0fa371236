"""Lines and slices as bytes: what is read is what was written, and torn bytes are noticed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afl.logs.codec import (
    BadBytes,
    gap_chunk,
    items_of,
    line_bytes,
    line_chunk,
    pack_slice,
    unpack_slice,
    without_first,
)
from afl.logs.frames import FrameKind, frame, frames_in
from afl.logs.model import Closed, Gap, Kind, Line, Opened, Slice, StreamKey, microseconds, moment

STREAM = "0" * 31 + "1"
LINES = st.lists(
    st.tuples(st.integers(0, 2**50), st.integers(0, 255), st.booleans(), st.binary(max_size=300)),
    min_size=1,
    max_size=20,
)


@settings(deadline=None)
@given(LINES, st.integers(1, 2**40))
def test_lines_come_back_as_they_were(rows: list[tuple[int, int, bool, bytes]], first: int) -> None:
    chunk = line_chunk(STREAM, first, [line_bytes(*row) for row in rows])
    assert list(items_of(chunk)) == [
        Line(first + number, *row[:2], row[2], row[3]) for number, row in enumerate(rows)
    ]
    assert chunk.head.level == max(row[1] for row in rows)
    for count in range(len(rows)):
        assert list(items_of(without_first(chunk, count))) == list(items_of(chunk))[count:]


def test_long_chunks_are_compressed_and_short_ones_are_not() -> None:
    short = line_chunk(STREAM, 1, [line_bytes(1, 0, False, b"x")])
    long = line_chunk(STREAM, 1, [line_bytes(1, 0, False, b"x" * 1000)] * 10)
    assert (short.head.kind, long.head.kind) == (Kind.LINES, Kind.PACKED)
    assert len(long.body) < 500


def test_a_slice_comes_back_as_it_was() -> None:
    chunks = (
        line_chunk(STREAM, 1, [line_bytes(5, 20, False, b"a"), line_bytes(6, 0, True, b"b")]),
        gap_chunk(STREAM, Gap(3, 9, "no room", 7)),
    )
    part = Slice(
        "s",
        "w",
        10,
        20,
        (Opened(STREAM, StreamKey("r", "0/ä", 2, "log"), 4),),
        chunks,
        (Closed(STREAM, 9, None, 8), Closed(STREAM, None, "died", 8)),
    )
    assert unpack_slice(pack_slice(part)) == part
    assert list(items_of(chunks[1])) == [Gap(3, 9, "no room", 7)]
    assert list(items_of(without_first(chunks[1], 2))) == [Gap(5, 9, "no room", 7)]


@pytest.mark.parametrize("data", [b"", b"\x05\0\0\0{}", b"\x02\0\0\0{}", b"\xff" * 100])
def test_bytes_that_are_no_slice_are_refused(data: bytes) -> None:
    with pytest.raises(BadBytes):
        unpack_slice(data)


def test_a_slice_of_another_length_or_version_is_refused() -> None:
    packed = pack_slice(Slice("s", "w", 0, 1, (), (), ()))
    with pytest.raises(BadBytes, match="end"):
        unpack_slice(packed + b"x")
    with pytest.raises(BadBytes, match="version 7"):
        unpack_slice(packed.replace(b'"version":1', b'"version":7'))


@settings(deadline=None)
@given(st.lists(st.binary(max_size=50), max_size=8), st.data())
def test_a_torn_or_changed_record_ends_what_is_read(
    bodies: list[bytes], data: st.DataObject
) -> None:
    records = [frame(FrameKind.LINE, bytes(16), n, body) for n, body in enumerate(bodies)]
    whole = b"".join(records)
    assert [each.rest for each in frames_in(whole)] == bodies
    cut = data.draw(st.integers(0, len(whole)))
    complete = sum(sum(map(len, records[: n + 1])) <= cut for n in range(len(records)))
    assert len(list(frames_in(whole[:cut]))) == complete
    if whole:
        place = data.draw(st.integers(0, len(whole) - 1))
        changed = bytearray(whole)
        changed[place] ^= 1 << data.draw(st.integers(0, 7))
        before = sum(sum(map(len, records[: n + 1])) <= place for n in range(len(records)))
        assert len(list(frames_in(bytes(changed)))) == before


def test_times_are_exact_to_the_microsecond() -> None:
    assert microseconds(moment(1_700_000_000_123_457)) == 1_700_000_000_123_457
