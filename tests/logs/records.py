"""Streams and records for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from afl.logs.model import Gap, Line, Slice, StreamKey
from afl.logs.reading import Reader, Shown
from afl.logs.segments import SegmentReader
from afl.logs.shipping import Shipment
from afl.logs.spool import Bounds, Spool
from afl.logs.store import LogStore

RUN = "run-1"
KEY = StreamKey(RUN, "0/build", 1, "stdout")
ERRORS = StreamKey(RUN, "0/build", 1, "stderr")


def spool_in(root: Path, **bounds: float) -> Spool:
    return Spool(root, "worker", bounds=Bounds(**bounds))  # type: ignore[arg-type]


def lines_of(shown: Sequence[Shown]) -> list[bytes]:
    return [each.item.data for each in shown if isinstance(each.item, Line)]


def gaps_of(shown: Sequence[Shown]) -> list[Gap]:
    return [each.item for each in shown if isinstance(each.item, Gap)]


def read(store: LogStore, run: str = RUN) -> list[Shown]:
    return list(Reader(store, run).news())


class Taken:
    """A road that keeps what is sent, for a test to deliver."""

    def __init__(self) -> None:
        self.slices: list[Slice] = []

    def send(self, slices: Sequence[Slice], again: int) -> None:
        self.slices += slices

    def close(self) -> None:
        pass


def slices_of(spool: Spool, store: LogStore) -> list[Slice]:
    """All of a spool as it would be sent."""
    return slices_at(spool.id, spool.reader, spool.end, store)


def slices_at(name: str, reader: SegmentReader, end: int, store: LogStore) -> list[Slice]:
    road = Taken()
    Shipment(name, "worker", reader, road, store).step(end)
    return road.slices
