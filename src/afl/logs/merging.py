"""The lines of many streams in the order of their times, each stream's in their own order."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from afl.logs.codec import items_of
from afl.logs.model import Chunk, ChunkHead, Gap, Line


@dataclass(frozen=True, slots=True)
class Item:
    """A line of a stream, or lines that are missing in it."""

    stream: str
    what: Line | Gap

    @property
    def number(self) -> int:
        return self.what.seq if isinstance(self.what, Line) else self.what.first

    @property
    def order(self) -> tuple[int, str, int]:
        """Times of one stream never go back, so this keeps the order of each."""
        return self.what.time_us, self.stream, self.number


Bodies = Callable[[Sequence[ChunkHead]], Iterable[Chunk]]


def order_of(head: ChunkHead) -> tuple[int, str, int]:
    """How chunks are to be given to `merged`."""
    return head.first_us, head.stream, head.first


def merged(heads: Iterable[ChunkHead], bodies: Bodies, at_once: int = 32) -> Iterator[Item]:
    """The items of chunks, which come by the time of their first line.

    No more chunks are read than overlap, and `at_once` of them ahead.
    """
    waiting = iter(heads)
    open_: list[tuple[tuple[int, str, int], Item, Iterator[Item]]] = []
    for chunk in _read(waiting, bodies, at_once):
        start = order_of(chunk.head)
        while open_ and open_[0][0] < start:
            yield _next(open_)
        _push(open_, _items(chunk))
    while open_:
        yield _next(open_)


def _read(heads: Iterator[ChunkHead], bodies: Bodies, at_once: int) -> Iterator[Chunk]:
    batch: list[ChunkHead] = []
    for head in heads:
        batch.append(head)
        if len(batch) >= at_once:
            yield from bodies(batch)
            batch = []
    if batch:
        yield from bodies(batch)


def _items(chunk: Chunk) -> Iterator[Item]:
    for each in items_of(chunk):
        yield Item(chunk.head.stream, each)


def _next(open_: list[tuple[tuple[int, str, int], Item, Iterator[Item]]]) -> Item:
    _, item, rest = heapq.heappop(open_)
    _push(open_, rest)
    return item


def _push(
    open_: list[tuple[tuple[int, str, int], Item, Iterator[Item]]], rest: Iterator[Item]
) -> None:
    item = next(rest, None)
    if item is not None:
        heapq.heappush(open_, (item.order, item, rest))
