"""Log lines in memory, for tests and for runs that end with their process."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from afl.base.clock import Clock
from afl.base.ids import IdSource
from afl.base.system import SystemClock, SystemIds
from afl.logs.applying import Addition, Fit, fit
from afl.logs.merging import order_of
from afl.logs.model import FIRST, Chunk, ChunkHead, Slice, microseconds
from afl.logs.store import Stream

_MICROSECOND = timedelta(microseconds=1)


class MemoryLogStore:
    """Threads may share one."""

    def __init__(self, clock: Clock | None = None, ids: IdSource | None = None) -> None:
        self._clock = clock or SystemClock()
        self._home = (ids or SystemIds()).new_id()
        self._lock = threading.Lock()
        self._positions: dict[str, int] = {}
        self._heard: dict[str, int] = {}
        self._streams: dict[str, tuple[Stream, str]] = {}
        self._chunks: dict[str, dict[int, Chunk]] = {}

    def home(self) -> str:
        return self._home

    def position(self, spool: str) -> int:
        with self._lock:
            return self._positions.get(spool, 0)

    def heard(self, spool: str, worker: str) -> None:
        with self._lock:
            self._heard[spool] = self.now_us()

    def append(self, slices: Sequence[Slice]) -> dict[str, int]:
        with self._lock:
            for part in slices:
                position = self._positions.setdefault(part.spool, 0)
                if fit(part, position) is Fit.NEXT:
                    self._take(part)
                    self._positions[part.spool] = part.end
                self._heard[part.spool] = self.now_us()
            return {part.spool: self._positions[part.spool] for part in slices}

    def _take(self, part: Slice) -> None:
        for opened in part.opened:
            made = Stream(opened.stream, opened.key, FIRST, opened.time_us, opened.time_us)
            self._streams.setdefault(opened.stream, (made, part.spool))
        addition = Addition()
        addition.add(part, {name: each.next_seq for name, (each, _) in self._streams.items()})
        for chunk in addition.chunks:
            self._chunks.setdefault(chunk.head.stream, {})[chunk.head.first] = chunk
        for name, (next_seq, last_us) in addition.grown.items():
            stream, spool = self._streams[name]
            grown = replace(stream, next_seq=next_seq, last_us=max(last_us, stream.last_us))
            self._streams[name] = (grown, spool)
        for name, closed in addition.closed.items():
            stream, spool = self._streams[name]
            if stream.closed_us is None:
                ended = replace(stream, closed_us=closed.time_us, lost=closed.lost)
                self._streams[name] = (ended, spool)

    def streams(self, run: str) -> list[Stream]:
        with self._lock:
            found = [
                replace(stream, heard_us=self._heard.get(spool, 0))
                for stream, spool in self._streams.values()
                if stream.key.run == run
            ]
        return sorted(found, key=lambda stream: (stream.opened_us, stream.id))

    def latest_streams(self, limit: int) -> list[Stream]:
        with self._lock:
            found = [
                replace(stream, heard_us=self._heard.get(spool, 0))
                for stream, spool in self._streams.values()
            ]
        found.sort(key=lambda stream: (stream.last_us, stream.id))
        return sorted(found[-limit:], key=lambda stream: (stream.opened_us, stream.id))

    def heads(self, since: Mapping[str, int]) -> list[ChunkHead]:
        with self._lock:
            found = [
                chunk.head
                for stream, first in since.items()
                for chunk in self._chunks.get(stream, {}).values()
                if chunk.head.first >= first
            ]
        return sorted(found, key=order_of)

    def bodies(self, heads: Sequence[ChunkHead]) -> list[Chunk]:
        with self._lock:
            return [self._chunks[head.stream][head.first] for head in heads]

    def rotate(self, older_than: timedelta, limit: int = 1000) -> int:
        with self._lock:
            before = self.now_us() - older_than // _MICROSECOND
            old = [name for name, (each, _) in self._streams.items() if each.last_us <= before]
            for name in old[:limit]:
                del self._streams[name]
                self._chunks.pop(name, None)
            return len(old[:limit])

    def now_us(self) -> int:
        return microseconds(self._clock.now())
