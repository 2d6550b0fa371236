"""The records of a spool as bytes: a length, a checksum, then the record.

A record says what it is, which stream it is about and a number in that stream. What follows depends
on what it is: a line as in a chunk, or JSON.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from afl.logs.codec import gap_chunk, line_chunk, opened_json, opened_of
from afl.logs.model import LONGEST_LINE, UNKNOWN, Chunk, Closed, Gap, Opened, Slice

_HEAD = struct.Struct("<II")
_BODY = struct.Struct("<B16sQ")
_NO_STREAM = bytes(16)
#: More than any record: what claims to be longer is torn.
_LONGEST = max(64 * 1024 * 1024, 2 * LONGEST_LINE)


class FrameKind(IntEnum):
    """What a record is."""

    #: the streams that are open, at the beginning of a segment
    HEADER = 1
    OPEN = 2
    LINE = 3
    GAP = 4
    CLOSE = 5


class Frame(NamedTuple):
    kind: int
    stream: bytes
    seq: int
    rest: bytes
    #: where the next one begins, counted from where the bytes began
    end: int


def frame(kind: FrameKind, stream: bytes, seq: int, rest: bytes) -> bytes:
    body = _BODY.pack(kind, stream, seq) + rest
    return _HEAD.pack(len(body), zlib.crc32(body)) + body


def frames_in(data: bytes) -> Iterator[Frame]:
    """The records in these bytes, up to the first that is not whole."""
    place, size = 0, len(data)
    head, unpack, crc = _HEAD.size, _BODY.unpack_from, zlib.crc32
    while place + head <= size:
        length, checksum = _HEAD.unpack_from(data, place)
        start, end = place + head, place + head + length
        if end > size or not _BODY.size <= length <= _LONGEST:
            return
        body = data[start:end]
        if crc(body) != checksum:
            return
        kind, stream, seq = unpack(body)
        yield Frame(kind, stream, seq, body[_BODY.size :], end)
        place = end


def length_at(data: bytes) -> int | None:
    """How long the record is that begins these bytes; None if that is not to be seen."""
    if len(data) < _HEAD.size:
        return None
    return int(_HEAD.unpack_from(data)[0]) + _HEAD.size


def header_frame(streams: Iterable[Opened]) -> bytes:
    """The streams that are open."""
    rest = json.dumps([opened_json(each) for each in streams]).encode()
    return frame(FrameKind.HEADER, _NO_STREAM, 0, rest)


def open_frame(opened: Opened) -> bytes:
    rest = json.dumps(opened_json(opened)).encode()
    return frame(FrameKind.OPEN, bytes.fromhex(opened.stream), 0, rest)


def line_frame(stream: bytes, seq: int, line: bytes) -> bytes:
    return frame(FrameKind.LINE, stream, seq, line)


def gap_frame(stream: bytes, gap: Gap) -> bytes:
    rest = json.dumps([gap.last, gap.reason, gap.time_us]).encode()
    return frame(FrameKind.GAP, stream, gap.first, rest)


def close_frame(closed: Closed) -> bytes:
    rest = json.dumps([closed.last, closed.lost, closed.time_us]).encode()
    return frame(FrameKind.CLOSE, bytes.fromhex(closed.stream), 0, rest)


class Slicer:
    """Makes slices of records, and knows which streams are open where it has come to."""

    def __init__(self, spool: str, worker: str) -> None:
        self._spool = spool
        self._worker = worker
        self.open: dict[bytes, Opened] = {}

    def learn(self, records: Iterable[Frame]) -> None:
        """Meets the streams of records that are not shipped."""
        for record in records:
            self._begin(record)
            if record.kind == FrameKind.CLOSE:
                self.open.pop(record.stream, None)

    def slice(self, records: Iterable[Frame], start: int, end: int) -> Slice:
        """The records from one position of the spool to another."""
        touched: dict[bytes, Opened] = {}
        chunks: list[Chunk] = []
        closed: list[Closed] = []
        #: of each stream, lines that follow each other
        stretches: dict[bytes, tuple[int, list[bytes]]] = {}

        def cut(stream: bytes) -> None:
            if stream in stretches:
                chunks.append(line_chunk(stream.hex(), *stretches.pop(stream)))

        for record in records:
            kind, stream, seq, rest, _ = record
            if kind == FrameKind.LINE:
                stretch = stretches.get(stream)
                if stretch is not None and stretch[0] + len(stretch[1]) == seq:
                    stretch[1].append(rest)
                    continue
                cut(stream)
                stretches[stream] = (seq, [rest])
            self._begin(record)
            if stream not in touched and kind != FrameKind.HEADER:
                touched[stream] = self.open.get(stream) or Opened(stream.hex(), UNKNOWN, 0)
            if kind == FrameKind.GAP:
                cut(stream)
                chunks.append(gap_chunk(stream.hex(), Gap(seq, *json.loads(rest))))
            elif kind == FrameKind.CLOSE:
                closed.append(Closed(stream.hex(), *json.loads(rest)))
                self.open.pop(stream, None)
        for stream in list(stretches):
            cut(stream)
        opened = tuple(touched.values())
        return Slice(self._spool, self._worker, start, end, opened, tuple(chunks), tuple(closed))

    def _begin(self, record: Frame) -> None:
        if record.kind == FrameKind.HEADER:
            for opened in map(opened_of, json.loads(record.rest)):
                self.open.setdefault(bytes.fromhex(opened.stream), opened)
        elif record.kind == FrameKind.OPEN:
            self.open[record.stream] = opened_of(json.loads(record.rest))
