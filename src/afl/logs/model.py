"""Streams, lines, and what travels from a worker to the store.

A stream is what one attempt at a step writes under one name, such as `stdout`, in one process. Its
lines are numbered from 1 without holes. Lines travel in chunks of one stream each; a slice is a
stretch of a worker's spool as chunks, with the streams that were opened and closed in it.

Times are microseconds since 1970, in UTC: there are millions of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum

#: The longest line that is kept in one piece, in bytes.
LONGEST_LINE = 64 * 1024
#: The number of the first line of a stream.
FIRST = 1
#: Why the end of a stream may be missing.
WORKER_DIED = "the worker died"
#: Why lines inside a stream may be missing, when nobody has said it.
LOST_ON_DISK = "lost on the disk of the worker"
SPOOL_FULL = "the spool of the worker was full"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def moment(time_us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=time_us)


@dataclass(frozen=True, slots=True)
class StreamKey:
    """What a stream is about. Several streams may have one key: a step that a dead worker had begun
    begins again under the same attempt."""

    run: str
    path: str
    attempt: int
    name: str


#: Of a stream whose beginning is lost: its lines are kept, but nobody knows whose they are.
UNKNOWN = StreamKey("", "", 0, "unknown")


@dataclass(frozen=True, slots=True)
class Opened:
    """A stream as it begins. `stream` is its id, 32 hexadecimal digits that no other stream has."""

    stream: str
    key: StreamKey
    time_us: int


@dataclass(frozen=True, slots=True)
class Line:
    """One line, or a part of a long one. Without its line end."""

    seq: int
    time_us: int
    #: as in `logging`; 0 if it has none
    level: int
    #: the line goes on in the next one
    partial: bool
    data: bytes


@dataclass(frozen=True, slots=True)
class Gap:
    """Lines that are missing. Without `last`, it is not known how many."""

    first: int
    last: int | None
    reason: str
    time_us: int


class Kind(IntEnum):
    """What a chunk has in it."""

    LINES = 0
    #: lines, compressed
    PACKED = 1
    #: the reason why there are no lines
    GAP = 2


@dataclass(frozen=True, slots=True)
class ChunkHead:
    """Which lines of which stream a chunk has: `count` of them from `first` on, or as many missing
    ones."""

    stream: str
    first: int
    count: int
    kind: Kind
    #: the highest of its lines
    level: int
    first_us: int
    last_us: int

    @property
    def next(self) -> int:
        """The number of the line after it."""
        return self.first + self.count


@dataclass(frozen=True, slots=True)
class Chunk:
    head: ChunkHead
    body: bytes


@dataclass(frozen=True, slots=True)
class Closed:
    """The end of a stream: after the line `last`, or with a tail that is lost for a reason."""

    stream: str
    last: int | None
    lost: str | None
    time_us: int


@dataclass(frozen=True, slots=True)
class Slice:
    """The records of a spool from one position to another."""

    spool: str
    worker: str
    start: int
    end: int
    #: every stream that has something in it
    opened: tuple[Opened, ...]
    chunks: tuple[Chunk, ...]
    closed: tuple[Closed, ...]
