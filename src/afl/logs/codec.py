"""Lines and slices as bytes.

A line in a chunk: time, level, flags and length, then its bytes; its number is its place in the
chunk. A slice: the length of a JSON text, that text, then the bodies of its chunks.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator

from afl.base.errors import AflError
from afl.logs.model import Chunk, ChunkHead, Closed, Gap, Kind, Line, Opened, Slice, StreamKey

_LINE = struct.Struct("<qBBI")
_LENGTH = struct.Struct("<I")
_PARTIAL = 1
_VERSION = 1
#: Compressing less gains nothing.
_WORTH_PACKING = 512
_QUICK = 1


class BadBytes(AflError):
    """Bytes that are no slice, or one of another version."""

    code = "logs.bad_bytes"


def line_bytes(time_us: int, level: int, partial: bool, data: bytes) -> bytes:
    return _LINE.pack(time_us, level, _PARTIAL if partial else 0, len(data)) + data


def line_head(line: bytes) -> tuple[int, int]:
    """The time and the level of a line."""
    time_us, level, _, _ = _LINE.unpack_from(line)
    return time_us, level


def line_chunk(stream: str, first: int, lines: list[bytes]) -> Chunk:
    """A chunk of lines that follow each other, from the number `first` on."""
    level, last_us = 0, 0
    for line in lines:
        last_us, its_level = line_head(line)
        level = max(level, its_level)
    body, kind = b"".join(lines), Kind.LINES
    if len(body) >= _WORTH_PACKING:
        packed = zlib.compress(body, _QUICK)
        if len(packed) < len(body):
            body, kind = packed, Kind.PACKED
    head = ChunkHead(stream, first, len(lines), kind, level, line_head(lines[0])[0], last_us)
    return Chunk(head, body)


def gap_chunk(stream: str, gap: Gap) -> Chunk:
    """A chunk in the place of lines that are missing; how many is known."""
    assert gap.last is not None
    count = gap.last - gap.first + 1
    head = ChunkHead(stream, gap.first, count, Kind.GAP, 0, gap.time_us, gap.time_us)
    return Chunk(head, gap.reason.encode())


def items_of(chunk: Chunk) -> Iterator[Line | Gap]:
    """The lines of a chunk, or the gap that it is."""
    head = chunk.head
    if head.kind is Kind.GAP:
        yield Gap(head.first, head.next - 1, chunk.body.decode(errors="replace"), head.first_us)
        return
    for number, line in enumerate(_raw_lines(chunk)):
        time_us, level, flags, _ = _LINE.unpack_from(line)
        data = line[_LINE.size :]
        yield Line(head.first + number, time_us, level, bool(flags & _PARTIAL), data)


def without_first(chunk: Chunk, count: int) -> Chunk:
    """The chunk without its first lines."""
    head = chunk.head
    if head.kind is Kind.GAP:
        reason = chunk.body.decode(errors="replace")
        return gap_chunk(head.stream, Gap(head.first + count, head.next - 1, reason, head.first_us))
    return line_chunk(head.stream, head.first + count, list(_raw_lines(chunk))[count:])


def _raw_lines(chunk: Chunk) -> Iterator[bytes]:
    body = zlib.decompress(chunk.body) if chunk.head.kind is Kind.PACKED else chunk.body
    place = 0
    while place < len(body):
        end = place + _LINE.size + _LINE.unpack_from(body, place)[3]
        yield body[place:end]
        place = end


def pack_slice(part: Slice) -> bytes:
    told = {
        "version": _VERSION,
        "spool": part.spool,
        "worker": part.worker,
        "start": part.start,
        "end": part.end,
        "opened": [opened_json(each) for each in part.opened],
        "chunks": [
            [
                each.head.stream,
                each.head.first,
                each.head.count,
                each.head.kind.value,
                each.head.level,
                each.head.first_us,
                each.head.last_us,
                len(each.body),
            ]
            for each in part.chunks
        ],
        "closed": [[each.stream, each.last, each.lost, each.time_us] for each in part.closed],
    }
    text = json.dumps(told, separators=(",", ":")).encode()
    return b"".join([_LENGTH.pack(len(text)), text, *(each.body for each in part.chunks)])


def unpack_slice(data: bytes) -> Slice:
    """
    Raises:
        BadBytes: it is not a slice that this version knows.
    """
    try:
        (length,) = _LENGTH.unpack_from(data)
        place = _LENGTH.size + length
        told = json.loads(data[_LENGTH.size : place])
        if told["version"] != _VERSION:
            raise BadBytes(f"a slice of version {told['version']}; this is version {_VERSION}")
        chunks = []
        for stream, first, count, kind, level, first_us, last_us, size in told["chunks"]:
            head = ChunkHead(stream, first, count, Kind(kind), level, first_us, last_us)
            chunks.append(Chunk(head, data[place : place + size]))
            place += size
        if place != len(data):
            raise BadBytes("a slice that does not end where it should")
        return Slice(
            told["spool"],
            told["worker"],
            told["start"],
            told["end"],
            tuple(opened_of(each) for each in told["opened"]),
            tuple(chunks),
            tuple(Closed(*each) for each in told["closed"]),
        )
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise BadBytes(f"these bytes are no slice of a spool: {error}") from error


def opened_json(opened: Opened) -> list[str | int]:
    key = opened.key
    return [opened.stream, key.run, key.path, key.attempt, key.name, opened.time_us]


def opened_of(told: list[str | int]) -> Opened:
    stream, run, path, attempt, name, time_us = told
    return Opened(
        str(stream), StreamKey(str(run), str(path), int(attempt), str(name)), int(time_us)
    )
