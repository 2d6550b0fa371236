"""The port of stores of log lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from afl.logs.model import Chunk, ChunkHead, Slice, StreamKey


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream as it is stored."""

    id: str
    key: StreamKey
    next_seq: int
    opened_us: int
    last_us: int
    closed_us: int | None = None
    #: why its end is missing
    lost: str | None = None
    #: since when the worker that writes it has not been heard of
    heard_us: int = 0


class Positions(Protocol):
    """Up to where spools are stored. What is stored may be freed."""

    def position(self, spool: str) -> int:
        """0 for a spool that is not known."""
        ...

    def heard(self, spool: str, worker: str) -> None:
        """Notes that the worker of a spool is alive."""
        ...


class LogLines(Protocol):
    """Lines as they are stored, for whoever reads them."""

    def streams(self, run: str) -> list[Stream]:
        """The streams of a run, the first first."""
        ...

    def latest_streams(self, limit: int) -> list[Stream]:
        """The streams of all runs that have said something last, the first first."""
        ...

    def heads(self, since: Mapping[str, int]) -> list[ChunkHead]:
        """The chunks of streams, each from a line on, by the times of their first lines."""
        ...

    def bodies(self, heads: Sequence[ChunkHead]) -> Iterable[Chunk]:
        """The chunks of these heads, in their order."""
        ...


class LogStore(Positions, LogLines, Protocol):
    """Keeps lines. Any number of processes append and read at once."""

    def home(self) -> str:
        """An id of the store as no other has it."""
        ...

    def append(self, slices: Sequence[Slice]) -> dict[str, int]:
        """Takes the slices that are next in their spools, all or none, and leaves the others.

        Answers up to where each of the spools is stored now.

        Raises:
            StoreUnavailable: nothing, or everything, was taken; the same again does no harm.
        """
        ...

    def rotate(self, older_than: timedelta, limit: int = 1000) -> int:
        """Removes streams whose last line is that old; answers how many."""
        ...

    def now_us(self) -> int:
        """The clock of the store."""
        ...
