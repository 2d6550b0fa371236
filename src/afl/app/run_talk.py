"""The lines of `sys.log` as one more stream beside those of handlers and commands, so that whoever
reads a log has one kind of line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import groupby
from logging import INFO

from afl.logs.codec import line_bytes, line_chunk
from afl.logs.merging import order_of
from afl.logs.model import FIRST, Chunk, ChunkHead, Line, StreamKey, microseconds
from afl.logs.store import LogStore, Stream
from afl.runtime.persistence import LogLine

#: The name under which the lines of `sys.log` are shown.
SYS_LOG = "sys.log"
#: So many lines of `sys.log` are read of a run.
MOST_LINES = 10_000
_START = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Talk:
    stream: Stream
    chunk: Chunk


def _talks(run: str, lines: Sequence[LogLine]) -> list[_Talk]:
    """A stream for each step that has said something."""
    talks = []
    by_path = sorted(enumerate(lines), key=lambda pair: (pair[1].path, pair[0]))
    for path, group in groupby(by_path, key=lambda pair: pair[1].path):
        said = [line for _, line in group]
        times = [microseconds(line.at or _START) for line in said]
        # always the same for a path; no stream of a worker begins with so many zeros
        id_ = "0" * 16 + sha256(path.encode()).hexdigest()[:16]
        texts = [json.dumps(dict(line.values), ensure_ascii=False).encode() for line in said]
        packed = [line_bytes(at, INFO, False, text) for at, text in zip(times, texts, strict=True)]
        key = StreamKey(run, path, 1, SYS_LOG)
        stream = Stream(id_, key, FIRST + len(said), times[0], times[-1], heard_us=times[-1])
        talks.append(_Talk(stream, line_chunk(id_, FIRST, packed)))
    return talks


class WithTalk:
    """A store of log lines, and the lines of `sys.log` of one run. For reading."""

    def __init__(self, store: LogStore | None, run: str, lines: Sequence[LogLine]) -> None:
        self._store = store
        self._talks = {talk.stream.id: talk for talk in _talks(run, lines)}

    def streams(self, run: str) -> list[Stream]:
        stored = [] if self._store is None else self._store.streams(run)
        found = [*stored, *(talk.stream for talk in self._talks.values())]
        return sorted(found, key=lambda stream: (stream.opened_us, stream.id))

    def latest_streams(self, limit: int) -> list[Stream]:
        return [] if self._store is None else self._store.latest_streams(limit)

    def heads(self, since: Mapping[str, int]) -> list[ChunkHead]:
        stored = {stream: first for stream, first in since.items() if stream not in self._talks}
        found = [] if self._store is None or not stored else self._store.heads(stored)
        said = [self._talks[stream].chunk.head for stream in since if stream in self._talks]
        return sorted([*found, *said], key=order_of)

    def bodies(self, heads: Sequence[ChunkHead]) -> Iterable[Chunk]:
        for is_talk, group in groupby(heads, key=lambda head: head.stream in self._talks):
            wanted = list(group)
            if is_talk:
                yield from (self._talks[head.stream].chunk for head in wanted)
            elif self._store is not None:
                yield from self._store.bodies(wanted)


def text_of(line: Line) -> str:
    """A line as text. What is no UTF-8 shows as such."""
    return line.data.decode(errors="replace").rstrip("\r")
