"""From a spool to the store, and back with what may be freed.

The shipper sends slices along a road, in their order, and asks the store how far it has come: only
what is stored is freed. When nothing has arrived for a while, it sends again from there, so a road
may lose what it has accepted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Protocol

from afl.kernel.errors import StoreUnavailable
from afl.logs.frames import Slicer
from afl.logs.model import Opened, Slice
from afl.logs.segments import SegmentReader
from afl.logs.store import LogStore, Positions

_log = logging.getLogger("afl.logs")
#: About so many bytes of records make a slice. A NATS server takes messages of up to a megabyte.
SLICE_BYTES = 256 * 1024
#: So many slices are on the way before their arrival at the road is waited for.
AT_ONCE = 8
#: Lines wait so long for others to travel with.
LINGER_SECONDS = 0.1
_LOOK_SECONDS = 0.25
_HEARD_SECONDS = 15.0
_STALL_SECONDS = 5.0
_LONGEST_STALL_SECONDS = 120.0


class Road(Protocol):
    """A way to the store."""

    def send(self, slices: Sequence[Slice], again: int) -> None:
        """Has slices on their way, or stored, when it answers.

        Args:
            again: how often slices were sent again so far: a road that recognises repetitions must
                not take those for repetitions.

        Raises:
            StoreUnavailable: some of them may be on their way; send all again.
        """
        ...

    def close(self) -> None: ...


class DirectRoad:
    """To the store itself."""

    def __init__(self, store: LogStore) -> None:
        self._store = store

    def send(self, slices: Sequence[Slice], again: int) -> None:
        self._store.append(slices)

    def close(self) -> None:
        """The store is closed by whoever opened it."""


class Shipment:
    """One spool on its way. Used by one thread."""

    def __init__(
        self,
        spool: str,
        worker: str,
        reader: SegmentReader,
        road: Road,
        positions: Positions,
    ) -> None:
        self._spool = spool
        self._worker = worker
        self._reader = reader
        self._road = road
        self._positions = positions
        self._slicer = Slicer(spool, worker)
        self._stored: int | None = None
        self._sent = 0
        self._again = 0
        self._stall_seconds = _STALL_SECONDS
        self._looked_at = self._moved_at = self._heard_at = float("-inf")

    @property
    def stored(self) -> int:
        """Up to where the store had it when it was last asked."""
        return self._stored or 0

    @property
    def open_streams(self) -> list[Opened]:
        """The streams that are open where it has come to."""
        return list(self._slicer.open.values())

    def step(self, end: int) -> float:
        """Sends what there is up to a position, if it is not on its way.

        Answers how many seconds there is nothing to do.

        Raises:
            StoreUnavailable: the store or the road is away.
        """
        self._look()
        slices = self._read(end)
        if slices:
            try:
                self._road.send(slices, self._again)
            except StoreUnavailable:
                self._go_back()
                raise
            if self._sent == self.stored:
                self._moved_at = time.monotonic()
            self._sent = slices[-1].end
        return LINGER_SECONDS if self._sent >= end or len(slices) < AT_ONCE else 0.0

    def _look(self) -> None:
        """Asks how far the store is; goes back there if that has not changed for long."""
        now = time.monotonic()
        if self._stored is None:
            self._stored = self._positions.position(self._spool)
            self._go_back()
        elif self._sent > self._stored and now >= self._looked_at + _LOOK_SECONDS:
            self._looked_at = now
            position = self._positions.position(self._spool)
            if position > self._stored:
                self._stored, self._moved_at = position, now
                self._stall_seconds = _STALL_SECONDS
                if position > self._sent:
                    self._go_back()
            elif now - self._moved_at > self._stall_seconds:
                self._moved_at = now
                self._stall_seconds = min(2 * self._stall_seconds, _LONGEST_STALL_SECONDS)
                self._again += 1
                self._go_back()
        if now >= self._heard_at + _HEARD_SECONDS:
            self._positions.heard(self._spool, self._worker)
            self._heard_at = now

    def _go_back(self) -> None:
        """Sends from where the store is, whatever is on its way."""
        self._sent = max(self.stored, self._reader.start())
        self._slicer.open.clear()
        self._slicer.learn(self._reader.before(self._sent))

    def _read(self, end: int) -> list[Slice]:
        slices: list[Slice] = []
        position = self._sent
        while position < end and len(slices) < AT_ONCE:
            records, behind = self._reader.read(position, end, SLICE_BYTES)
            if not records:
                _log.error(
                    "the spool %s cannot be read from %s to %s", self._spool, position, behind
                )
            slices.append(self._slicer.slice(records, position, behind))
            position = behind
        return slices
