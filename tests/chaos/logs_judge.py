"""The verdict on log lines: what was written, against what a reader is shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from afl.logs.model import WORKER_DIED, Gap, Line, StreamKey
from afl.logs.reading import Shown
from tests.chaos.logs_worker import key_of, text_of


@dataclass(frozen=True, slots=True)
class LogVerdict:
    lines: int
    stored: int
    lost: int
    doubled: int
    #: gap records: of the worker that was killed, and of others, which there must be none of
    gaps: int
    unexplained_gaps: int
    #: lines that the killed worker had written, and those of them that are stored
    written_by_dead: int
    stored_of_dead: int
    nats_kills: int
    nats_disks_lost: int
    sink_kills: int
    postgres_away_s: float
    seconds: float
    lines_per_s: int
    problems: tuple[str, ...]

    @property
    def doubts(self) -> list[str]:
        """Why this run proves nothing, if it does not."""
        least = ("nats_kills", "nats_disks_lost", "sink_kills", "postgres_away_s", "gaps")
        return [f"{name} is 0" for name in least if not getattr(self, name)]

    @property
    def ok(self) -> bool:
        broken = self.lost + self.doubled + self.unexplained_gaps
        return not (broken or self.problems or self.doubts)


@dataclass(slots=True)
class Tally:
    """What readers were shown."""

    stored: int = 0
    lost: int = 0
    doubled: int = 0
    gaps: int = 0
    problems: list[str] = field(default_factory=list)

    def read(self, number: int, counts: list[int], shown: Iterable[Shown]) -> None:
        """Goes through what is shown of the run of a process that has written so many lines to each
        of its streams."""
        expected = {key_of(number, stream): (stream, count) for stream, count in enumerate(counts)}
        last = self._walk({key: stream for key, (stream, _) in expected.items()}, shown)
        for key, (_, count) in expected.items():
            self.lost += max(0, count - last.get(key, 0))
            if last.get(key, 0) < count:
                self.problems.append(f"{key} ends at {last.get(key, 0)} of {count}")

    def _walk(self, streams: dict[StreamKey, int], shown: Iterable[Shown]) -> dict[StreamKey, int]:
        last: dict[StreamKey, int] = {}
        for each in shown:
            if isinstance(each.item, Gap):
                self.gaps += 1
                if each.item.last is not None or each.item.reason != WORKER_DIED:
                    self.problems.append(f"{each.key} has the gap {each.item}")
            elif each.key not in streams:
                self.problems.append(f"nobody has written to {each.key}")
            else:
                self._step(each.key, streams[each.key], each.item, last)
        return last

    def _step(self, key: StreamKey, stream: int, line: Line, last: dict[StreamKey, int]) -> None:
        """One line more: it has to be the next, and what was written."""
        before = last.get(key, 0)
        self.stored += 1
        if line.seq <= before:
            self.doubled += 1
            self.problems.append(f"{key} has line {line.seq} after {before}")
            return
        if line.seq > before + 1:
            self.lost += line.seq - before - 1
            self.problems.append(f"{key} goes from line {before} to {line.seq}")
        if line.data != text_of(stream, line.seq) or line.partial:
            self.problems.append(f"{key} has another line {line.seq}: {line.data!r}")
        last[key] = line.seq
