"""Windows of a run's log: its last lines, what is before them, and what comes behind.

A cursor that goes forward knows of each stream how far it was read, so a line that arrives late,
with an early time, is not passed over. One that goes back is a place in the order of times.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from afl.base.errors import AflError
from afl.logs.merging import Item, merged, order_of
from afl.logs.model import FIRST, ChunkHead, Gap
from afl.logs.reading import Shown, Wanted
from afl.logs.store import LogLines, Stream

#: A cursor names a stream by the end of its id, the part that is random.
_NAME_BYTES = 6
#: Of a run with more streams than this, the windows have the newest.
MOST_STREAMS = 2000
#: So many chunks are read for one window at most; the next window goes on from there.
MOST_CHUNKS = 200
_AT_ONCE = 16

Order = tuple[int, str, int]


class BadCursor(AflError):
    """This is not a cursor of this log. Start without one."""

    code = "logs.bad_cursor"


@dataclass(frozen=True, slots=True)
class Spot:
    """How far a stream was read: the next line, and the chunk in which that is looked for."""

    chunk: int
    next: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A line or a gap in a window. `name` tells it from all others of the run."""

    name: str
    shown: Shown


@dataclass(frozen=True, slots=True)
class Window:
    """Entries in the order of their times."""

    entries: list[Entry]
    #: for what comes behind
    next: str
    #: for what is before; None if there is nothing
    before: str | None = None


@dataclass(slots=True)
class Windows:
    """The windows of one run, or of the last lines of all. Made for one request."""

    store: LogLines
    #: None for the streams of all runs that have said something last
    run: str | None
    wanted: Wanted = field(default_factory=Wanted)

    def tail(self, limit: int) -> Window:
        """The last entries."""
        streams = self._streams()
        spots = {name(each.id): Spot(each.next_seq, _told(each)) for each in streams}
        found, older = self._back(streams, None, limit)
        return Window(found, _forward(spots), older)

    def earlier(self, before: str, limit: int) -> Window:
        """The entries right before a place. `next` is that place's own, and of no use."""
        found, older = self._back(self._streams(), _order(before), limit)
        return Window(found, "", older)

    def later(self, after: str | None, limit: int) -> Window:
        """The entries behind a cursor, or the first ones.

        Raises:
            BadCursor: it is none.
        """
        spots = {} if after is None else _spots(after)
        streams = self._streams()
        entries: list[Entry] = []
        for entry in self._following(streams, spots):
            entries.append(entry)
            if len(entries) == limit:
                break
        return Window(entries, _forward(spots))

    def _streams(self) -> list[Stream]:
        if self.run is None:
            streams = self.store.latest_streams(MOST_STREAMS)
        else:
            streams = self.store.streams(self.run)
        return [each for each in streams if self.wanted.has_stream(each.key)][-MOST_STREAMS:]

    def _following(self, streams: Sequence[Stream], spots: dict[str, Spot]) -> Iterator[Entry]:
        """What was not read, and notes in `spots` what was."""
        known = {each.id: each for each in streams}
        start = Spot(FIRST, FIRST)
        since = {
            each.id: spots.get(name(each.id), start).chunk
            for each in streams
            if each.next_seq > spots.get(name(each.id), start).next
        }
        heads = self.store.heads(since) if since else []
        starts = {(head.stream, head.first) for head in heads}
        place: dict[str, int] = {}
        for item in merged(heads, self.store.bodies):
            if (item.stream, item.number) in starts:
                place[item.stream] = item.number
            spot = spots.get(name(item.stream), start)
            if item.number < spot.next:
                continue
            spots[name(item.stream)] = Spot(place.get(item.stream, FIRST), _behind(item))
            if self.wanted.has(item.what):
                yield _entry(known, item)
        for stream in streams:
            if spots.get(name(stream.id), start).next == stream.next_seq and stream.lost:
                spots[name(stream.id)] = Spot(stream.next_seq, stream.next_seq + 1)
                yield from self._end(stream)

    def _back(
        self, streams: Sequence[Stream], before: Order | None, limit: int
    ) -> tuple[list[Entry], str | None]:
        """The last entries before a place, and where to go on.

        Chunks are read by the times of their last lines, the latest first: a line is certain to be
        among the last ones when every chunk that was not read ended before it.
        """
        known = {each.id: each for each in streams}
        heads = [
            head
            for head in self.store.heads({each.id: FIRST for each in streams})
            if head.next <= known[head.stream].next_seq
            and self.wanted.has_chunk(head)
            and (before is None or order_of(head) < before)
        ]
        heads.sort(key=lambda head: head.last_us)
        ends = [end for each in streams for end in self._end(each)]
        found = [(_order_of(end), end) for end in ends]
        read = 0
        while heads and read < MOST_CHUNKS:
            edge = heads[-1].last_us
            if sum(_is_before(at, before) and at[0] > edge for at, _ in found) > limit:
                break
            batch = [heads.pop() for _ in range(min(_AT_ONCE, len(heads)))]
            read += len(batch)
            for item in merged(sorted(batch, key=order_of), self.store.bodies):
                if self.wanted.has(item.what):
                    found.append((item.order, _entry(known, item)))
        return self._cut(found, heads, before, limit)

    def _cut(
        self,
        found: list[tuple[Order, Entry]],
        unread: Sequence[ChunkHead],
        before: Order | None,
        limit: int,
    ) -> tuple[list[Entry], str | None]:
        edge = max((head.last_us for head in unread), default=-1)
        certain = sorted(
            (pair for pair in found if _is_before(pair[0], before) and pair[0][0] > edge),
            key=lambda pair: pair[0],
        )
        window = certain[-limit:]
        if len(certain) > limit:
            return [entry for _, entry in window], _place(window[0][0])
        # nothing of what was read is left over, so the rest lies behind the edge
        return [entry for _, entry in window], _place((edge + 1, "", 0)) if unread else None

    def _end(self, stream: Stream) -> Iterator[Entry]:
        """What is missing at the end of a stream."""
        if stream.lost is not None and stream.closed_us is not None:
            gap = Gap(stream.next_seq, None, stream.lost, stream.closed_us)
            if self.wanted.has(gap):
                yield Entry(f"{name(stream.id)}:{stream.next_seq}", Shown(stream.key, gap))


def name(stream: str) -> str:
    """A stream's name within its run."""
    return stream.replace("-", "")[-2 * _NAME_BYTES :]


def _entry(known: Mapping[str, Stream], item: Item) -> Entry:
    return Entry(f"{name(item.stream)}:{item.number}", Shown(known[item.stream].key, item.what))


def _order_of(entry: Entry) -> Order:
    item = entry.shown.item
    stream, _, number = entry.name.partition(":")
    return item.time_us, stream, int(number)


def _is_before(at: Order, before: Order | None) -> bool:
    return before is None or at < before


def _behind(item: Item) -> int:
    what = item.what
    if isinstance(what, Gap):
        return (what.last or what.first) + 1
    return what.seq + 1


def _told(stream: Stream) -> int:
    """The end of a stream counts as read when what is missing there was told."""
    return stream.next_seq + (stream.lost is not None)


def _forward(spots: Mapping[str, Spot]) -> str:
    parts = bytearray()
    for stream, spot in sorted(spots.items()):
        parts += bytes.fromhex(stream)
        parts += _number(spot.chunk) + _number(spot.next)
    return base64.urlsafe_b64encode(zlib.compress(bytes(parts), 1)).decode().rstrip("=")


def _spots(text: str) -> dict[str, Spot]:
    try:
        padded = text + "=" * (-len(text) % 4)
        # a cursor of the most streams has fewer bytes than this; more is not one of ours
        packer = zlib.decompressobj()
        packed = base64.b64decode(padded, altchars=b"-_", validate=True)
        data = packer.decompress(packed, MOST_STREAMS * 32)
        if not packer.eof:
            raise BadCursor
        spots: dict[str, Spot] = {}
        at = 0
        while at < len(data):
            stream = data[at : at + _NAME_BYTES].hex()
            chunk, at = _read_number(data, at + _NAME_BYTES)
            following, at = _read_number(data, at)
            spots[stream] = Spot(chunk, following)
    except (ValueError, IndexError, zlib.error) as error:
        raise BadCursor from error
    return spots


def _number(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the last byte is below 128."""
    parts = bytearray()
    while value >= 128:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        shift += 7
        at += 1
        if byte < 128:
            return value, at


def _place(order: Order) -> str:
    time_us, stream, number = order
    return f"{time_us}.{number}.{stream}"


def _order(text: str) -> Order:
    try:
        time_us, number, stream = text.split(".")
        return int(time_us), stream, int(number)
    except ValueError as error:
        raise BadCursor from error
