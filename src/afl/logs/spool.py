"""A spool: the lines of many streams, written by many threads to one folder of one process.

A line is in the file, in the hands of the operating system, when `line` answers: kill -9 loses
nothing of it. The files are synced to the disk five times a second, so a power cut may lose what
was written in the last moment.

The folder is bounded. When it is full, a stream waits until there is room, so that whoever writes
waits too; or, if it was opened that way, drops lines and leaves a gap in their place.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import threading
from collections import deque
from dataclasses import dataclass
from enum import Enum
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

from afl.base.clock import Clock
from afl.base.errors import AflError
from afl.base.ids import IdSource
from afl.base.system import SystemClock, SystemIds
from afl.kernel.working.loops import BackgroundLoop
from afl.logs.codec import line_bytes
from afl.logs.frames import close_frame, gap_frame, header_frame, line_frame, open_frame
from afl.logs.model import (
    FIRST,
    LONGEST_LINE,
    SPOOL_FULL,
    WORKER_DIED,
    Closed,
    Gap,
    Opened,
    StreamKey,
    microseconds,
)
from afl.logs.redacting import LineRedactor, Redactor
from afl.logs.segments import SegmentReader, SegmentWriter

_log = logging.getLogger("afl.logs")
LOCK, ABOUT = "lock", "spool.json"
_MEGABYTE = 1024 * 1024
_LOOK_SECONDS = 0.5


class SpoolClosed(AflError):
    """The worker is ending, and lines can no longer be kept."""

    code = "logs.spool_closed"


class WhenFull(Enum):
    """What happens to a line for which there is no room."""

    WAIT = "wait"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large a spool may become, and how often it is synced."""

    most_bytes: int = 1024 * _MEGABYTE
    segment_bytes: int = 8 * _MEGABYTE
    sync_seconds: float = 0.2


def locked(folder: Path) -> int | None:
    """The lock of a spool's folder as an open file; None if a process has it that lives."""
    file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        flock(file, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


class Spool:
    """Made in a folder of its own below `root`. Threads share it."""

    def __init__(
        self,
        root: Path,
        worker: str,
        *,
        bounds: Bounds | None = None,
        redactor: Redactor | None = None,
        clock: Clock | None = None,
        ids: IdSource | None = None,
    ) -> None:
        self._ids = ids or SystemIds()
        self.id = _short(self._ids)
        self.worker = worker
        self.bounds = bounds or Bounds()
        self.redactor = redactor or Redactor()
        self._clock = clock or SystemClock()
        self.folder, self._lock_file = _made(root, self.id, worker)
        self._writer = SegmentWriter(self.folder)
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._open: dict[str, StreamWriter] = {}
        #: records that must be written, and for which there was no room on the disk
        self._owed: deque[bytes] = deque()
        self._freed = 0
        self._is_dirty = False
        self._is_ending = self._is_closed = False
        self._writer.begin(header_frame([]))
        self.reader = SegmentReader(self.folder)
        self._syncing = BackgroundLoop("log-sync", self._sync_often)
        self._syncing.start()

    @property
    def end(self) -> int:
        """The position after the last record."""
        return self._writer.end

    def open(
        self,
        key: StreamKey,
        when_full: WhenFull = WhenFull.WAIT,
        until: threading.Event | None = None,
    ) -> StreamWriter:
        """A new stream. Close it, or it counts as cut off when the process is gone.

        Args:
            until: lines do not wait for room any more when this is set; they are dropped.
        """
        opened = Opened(_short(self._ids), key, self.now_us())
        stream = StreamWriter(self, opened, when_full, until or threading.Event())
        with self._lock:
            self._refuse_closed()
            self._open[stream.opened.stream] = stream
            self._put(open_frame(stream.opened))
        return stream

    def declare_lost(self, streams: list[Opened], reason: str = WORKER_DIED) -> None:
        """Notes that the ends of streams of another spool are missing. Synced when it answers."""
        with self._lock:
            self._refuse_closed()
            for opened in streams:
                closed = Closed(opened.stream, None, reason, self.now_us())
                self._put(open_frame(opened))
                self._put(close_frame(closed))
        self.sync()

    def free(self, position: int) -> None:
        """Gives back the room of what is stored elsewhere."""
        first = self.reader.free(position)
        with self._lock:
            self._freed = first
            self._room.notify_all()

    def sync(self) -> None:
        """Has all that is written on the disk when it answers."""
        with self._lock:
            self._pay()
            if not self._is_dirty or self._is_closed:
                return
            self._is_dirty = False
            file = self._writer.duplicate()
        try:
            os.fdatasync(file)
        finally:
            os.close(file)

    def close(self) -> None:
        """Closes all streams. What is not shipped stays for the next worker."""
        with self._lock:
            self._is_ending = True
            self._room.notify_all()
            streams = list(self._open.values())
        for stream in streams:
            stream.close()
        self._syncing.stop()
        self.sync()
        with self._lock:
            self._is_closed = True
            self._writer.close()

    def release(self) -> None:
        """Lets others have the folder. Call it last."""
        if self._lock_file >= 0:
            os.close(self._lock_file)
            self._lock_file = -1

    def now_us(self) -> int:
        return microseconds(self._clock.now())

    # What streams do, under the lock

    @property
    def lock(self) -> threading.Lock:
        return self._lock

    def put_line(self, record: bytes, when_full: WhenFull, until: threading.Event) -> bool:
        """Writes a line. False if it was dropped: there is no room, and it is not to wait."""
        while not self._has_room(len(record)) or not self._try_put(record):
            if self._is_closed:
                raise SpoolClosed("The spool is closed; what is said now is not kept.")
            if when_full is WhenFull.DROP or self._is_ending or until.is_set():
                return False
            # the disk may be full of other things too, so look from time to time
            self._room.wait(_LOOK_SECONDS)
        return True

    def put_end(self, stream: StreamWriter, records: list[bytes]) -> None:
        """Writes the last records of a stream."""
        if self._open.pop(stream.opened.stream, None) is not None:
            for record in records:
                self._put(record)

    def _put(self, record: bytes) -> None:
        if not self._try_put(record):
            self._owed.append(record)

    def _has_room(self, size: int) -> bool:
        return self._writer.end - self._freed + size <= self.bounds.most_bytes

    def _try_put(self, record: bytes) -> bool:
        """Writes it behind all that must be written before. False if the disk is full."""
        if self._is_closed or (self._owed and not self._pay()):
            return False
        return self._append(record)

    def _pay(self) -> bool:
        while self._owed and not self._is_closed:
            if not self._append(self._owed[0]):
                return False
            self._owed.popleft()
        return True

    def _append(self, record: bytes) -> bool:
        try:
            if self._writer.size >= self.bounds.segment_bytes:
                self._writer.begin(header_frame(each.opened for each in self._open.values()))
            self._writer.append(record)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            _log.warning("there is no room for log lines on the disk of %s", self.folder)
            return False
        self._is_dirty = True
        return True

    def _refuse_closed(self) -> None:
        if self._is_ending:
            raise SpoolClosed("The spool is closed; no stream can be opened.")

    def _sync_often(self) -> float:
        self.sync()
        return self.bounds.sync_seconds


class StreamWriter:
    """One stream of a spool. Threads may share it."""

    def __init__(
        self, spool: Spool, opened: Opened, when_full: WhenFull, until: threading.Event
    ) -> None:
        self.opened = opened
        self._spool = spool
        # a thread that waits for room lets go of the lock of the spool, and has its number already
        self._own = threading.Lock()
        self._id = bytes.fromhex(opened.stream)
        self._when_full = when_full
        self._until = until
        self._redactor = LineRedactor(spool.redactor)
        self._next = FIRST
        self._last_us = opened.time_us
        #: the first line since the last one that was written; None if none was dropped
        self._dropped: int | None = None

    def line(
        self, data: bytes, *, partial: bool = False, level: int = 0, time_us: int | None = None
    ) -> None:
        """Keeps a line, or a part of one that goes on. It is in the file when this answers, unless
        there is no room and the stream drops lines then.

        Raises:
            SpoolClosed: the worker is ending.
        """
        with self._own, self._spool.lock:
            shown = self._redactor.redacted(data, partial=partial)
            if partial and not shown:
                return
            # of one stream, times never go back, whatever the clock does
            self._last_us = max(self._last_us, time_us or self._spool.now_us())
            while len(shown) > LONGEST_LINE:
                self._write(shown[:LONGEST_LINE], True, level)
                shown = shown[LONGEST_LINE:]
            self._write(shown, partial, level)

    def close(self) -> None:
        """Ends the stream. A second time changes nothing."""
        with self._own, self._spool.lock:
            if self._redactor.holds:
                self._write(self._redactor.redacted(b"", partial=False), False, 0)
            records = self._gap()
            last = self._next - 1
            records.append(close_frame(Closed(self.opened.stream, last, None, self._last_us)))
            self._spool.put_end(self, records)

    def _write(self, data: bytes, partial: bool, level: int) -> None:
        line = line_bytes(self._last_us, level, partial, data)
        # the gap is written with the first line that comes through again
        record = b"".join([*self._gap(), line_frame(self._id, self._next, line)])
        if self._spool.put_line(record, self._when_full, self._until):
            self._dropped = None
        elif self._dropped is None:
            self._dropped = self._next
        self._next += 1

    def _gap(self) -> list[bytes]:
        if self._dropped is None:
            return []
        gap = Gap(self._dropped, self._next - 1, SPOOL_FULL, self._last_us)
        return [gap_frame(self._id, gap)]


def _made(root: Path, name: str, worker: str) -> tuple[Path, int]:
    """The folder of a new spool, locked. It has its name when it is locked, so that nobody takes it
    for one that a dead worker has left."""
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    hidden = root / f".{name}"
    hidden.mkdir(mode=0o700)
    about = {"version": 1, "spool": name, "worker": worker}
    (hidden / ABOUT).write_text(json.dumps(about), encoding="utf-8")
    file = locked(hidden)
    assert file is not None
    folder = hidden.rename(root / name)
    return folder, file


def _short(ids: IdSource) -> str:
    return ids.new_id().replace("-", "")
