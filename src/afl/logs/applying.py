"""What a slice adds to what is stored: each line once, each hole as a gap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from afl.logs.codec import gap_chunk, without_first
from afl.logs.model import FIRST, LOST_ON_DISK, Chunk, Closed, Gap, Slice


class Fit(Enum):
    """How a slice lies to the position up to which its spool is stored."""

    #: it goes on from there, or from before
    NEXT = "next"
    #: all of it is stored
    STALE = "stale"
    #: something before it is missing
    AHEAD = "ahead"


def fit(part: Slice, position: int) -> Fit:
    """A slice is taken when all before it is stored. What was sent again in other pieces may have a
    beginning that is stored; the numbers of the lines tell which."""
    if part.start > position:
        return Fit.AHEAD
    return Fit.NEXT if part.end > position else Fit.STALE


@dataclass(slots=True)
class Addition:
    """What slices add, stream by stream."""

    chunks: list[Chunk] = field(default_factory=list)
    closed: dict[str, Closed] = field(default_factory=dict)
    #: of each stream that grows: the number of its next line, and the time of its last
    grown: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, part: Slice, stored: Mapping[str, int]) -> None:
        """Adds a slice.

        Args:
            stored: the number of the next line of each stream that is stored already.
        """
        for chunk in part.chunks:
            self._add_chunk(chunk, stored)
        for closed in part.closed:
            self._close(closed, stored)

    def _next(self, stream: str, stored: Mapping[str, int]) -> int:
        if stream in self.grown:
            return self.grown[stream][0]
        return stored.get(stream, FIRST)

    def _add_chunk(self, chunk: Chunk, stored: Mapping[str, int]) -> None:
        head = chunk.head
        expected = self._next(head.stream, stored)
        if head.next <= expected:
            return  # it came from another spool before, or was sent in other pieces
        if head.first < expected:
            chunk = without_first(chunk, expected - head.first)
        elif head.first > expected:
            hole = Gap(expected, head.first - 1, LOST_ON_DISK, head.first_us)
            self.chunks.append(gap_chunk(head.stream, hole))
        self.chunks.append(chunk)
        self.grown[head.stream] = (head.next, head.last_us)

    def _close(self, closed: Closed, stored: Mapping[str, int]) -> None:
        expected = self._next(closed.stream, stored)
        if closed.last is not None and closed.last >= expected:
            hole = Gap(expected, closed.last, LOST_ON_DISK, closed.time_us)
            self.chunks.append(gap_chunk(closed.stream, hole))
            self.grown[closed.stream] = (closed.last + 1, closed.time_us)
        self.closed.setdefault(closed.stream, closed)
