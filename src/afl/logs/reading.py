"""Stored lines of a run, then those that come: each once, whatever arrives in between.

The store is the truth. A reader knows of each stream up to which line it has read; every look takes
what the store has beyond that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from afl.logs.merging import merged
from afl.logs.model import FIRST, ChunkHead, Gap, Kind, Line, StreamKey
from afl.logs.store import LogStore, Stream

T = TypeVar("T")
#: A worker that was not heard of for so long is thought to be gone with its disk.
SILENT_US = 60_000_000
_SHORTEST_PAUSE = 0.1
_LONGEST_PAUSE = 1.0
_SILENT = "the stream was not closed, and its worker is not heard of"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which lines to show. Gaps are shown wherever a line might have been."""

    #: this step, and those below it
    path: str | None = None
    name: str | None = None
    level: int = 0
    since_us: int = 0
    pattern: re.Pattern[str] | None = None

    def has_stream(self, key: StreamKey) -> bool:
        below = self.path is None or key.path == self.path or key.path.startswith(f"{self.path}/")
        return below and self.name in (None, key.name)

    def has_chunk(self, head: ChunkHead) -> bool:
        return head.last_us >= self.since_us and (head.kind is Kind.GAP or head.level >= self.level)

    def has(self, item: Line | Gap) -> bool:
        if item.time_us < self.since_us:
            return False
        if isinstance(item, Gap):
            return True
        text = item.data.decode(errors="replace")
        return item.level >= self.level and (
            self.pattern is None or self.pattern.search(text) is not None
        )


@dataclass(frozen=True, slots=True)
class Shown:
    """A line or a gap, and what it is of."""

    key: StreamKey
    item: Line | Gap


@dataclass(slots=True)
class Reader:
    """Reads one run, from its beginning on. Used by one thread."""

    store: LogStore
    run: str
    wanted: Wanted = field(default_factory=Wanted)
    _read: dict[str, int] = field(default_factory=dict)
    #: the streams whose end was told
    _ended: set[str] = field(default_factory=set)
    _streams: list[Stream] = field(default_factory=list)

    def news(self) -> Iterator[Shown]:
        """What the store has beyond what was read, by the times of lines.

        Read to the end: what was not taken does not come again.
        """
        self._streams = [
            stream for stream in self.store.streams(self.run) if self.wanted.has_stream(stream.key)
        ]
        keys = {stream.id: stream.key for stream in self._streams}
        since = {
            stream.id: self._read.get(stream.id, FIRST)
            for stream in self._streams
            if stream.next_seq > self._read.get(stream.id, FIRST)
        }
        heads = self._following(since) if since else []
        for item in merged(heads, self.store.bodies):
            if self.wanted.has(item.what):
                yield Shown(keys[item.stream], item.what)
        yield from self._ends()

    def _following(self, since: dict[str, int]) -> list[ChunkHead]:
        wanted = []
        for head in self.store.heads(since):
            self._read[head.stream] = head.next
            if self.wanted.has_chunk(head):
                wanted.append(head)
        return wanted

    def _ends(self) -> Iterator[Shown]:
        """Of streams that are read to the end: what is missing there."""
        now_us = None
        for stream in self._streams:
            if stream.id in self._ended or stream.next_seq > self._read.get(stream.id, FIRST):
                continue
            if stream.closed_us is not None:
                reason, at_us = stream.lost, stream.closed_us
            else:
                now_us = self.store.now_us() if now_us is None else now_us
                if now_us - stream.heard_us < SILENT_US:
                    continue
                reason, at_us = _SILENT, stream.heard_us
            self._ended.add(stream.id)
            if reason is not None and at_us >= self.wanted.since_us:
                yield Shown(stream.key, Gap(stream.next_seq, None, reason, at_us))

    @property
    def is_complete(self) -> bool:
        """Whether every stream that is known has ended, and all of it was read."""
        return all(stream.id in self._ended for stream in self._streams)


def follow(
    news: Callable[[], Iterator[T]],
    is_complete: Callable[[], bool],
    is_over: Callable[[], bool],
    wait: Callable[[float], None],
) -> Iterator[T]:
    """All that comes, until there will be no more.

    Args:
        news: what is new.
        is_complete: whether all streams that are known have ended.
        is_over: whether the run has ended, and so long ago that all of its streams are known.
        wait: waits for so many seconds.
    """
    pause = _SHORTEST_PAUSE
    while True:
        over = is_over()
        found = False
        for each in news():
            found = True
            yield each
        if over and not found and is_complete():
            return
        pause = _SHORTEST_PAUSE if found else min(2 * pause, _LONGEST_PAUSE)
        wait(pause)
