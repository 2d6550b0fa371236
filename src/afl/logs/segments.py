"""The files of a spool: segments that are only appended to, each named by the position at which it
begins. A position is a number of bytes since the spool was made."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from afl.logs.frames import Frame, frames_in, length_at

_SUFFIX = ".seg"
_DIGITS = 20


def segments_of(folder: Path) -> list[tuple[int, Path]]:
    """The segments that are there, the first first, each with its position."""
    found = (path for path in folder.iterdir() if path.suffix == _SUFFIX)
    return sorted((int(path.stem), path) for path in found)


class SegmentWriter:
    """The end of a spool. Not for several threads at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = -1
        self.base = self.end = 0

    def begin(self, header: bytes) -> None:
        """Begins a segment where the one before ends."""
        path = self._folder / f"{self.end:0{_DIGITS}}{_SUFFIX}"
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        try:
            _write_all(file, header)
        except OSError:
            os.close(file)
            path.unlink()
            raise
        self._sync_folder()
        self.close()
        self._file = file
        self.base = self.end
        self.end += len(header)

    def append(self, data: bytes) -> None:
        """Writes all of it, or raises OSError and leaves nothing of it."""
        size = self.end - self.base
        try:
            _write_all(self._file, data)
        except OSError:
            # half a record would hide what comes after it
            os.ftruncate(self._file, size)
            raise
        self.end += len(data)

    @property
    def size(self) -> int:
        """Of the segment that is written now."""
        return self.end - self.base

    def duplicate(self) -> int:
        """The file once more, for a thread that syncs it while others write."""
        return os.dup(self._file)

    def close(self) -> None:
        if self._file >= 0:
            os.fdatasync(self._file)
            os.close(self._file)
            self._file = -1

    def _sync_folder(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _write_all(file: int, data: bytes) -> None:
    written = os.write(file, data)
    while written < len(data):
        written += os.write(file, data[written:])


class SegmentReader:
    """Reads records of a spool. Somebody else may be writing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self) -> int:
        """The first position that is still there."""
        found = segments_of(self._folder)
        return found[0][0] if found else 0

    def end(self) -> int:
        """Where the records end, as the files tell: a torn one at the end does not count."""
        found = segments_of(self._folder)
        if not found:
            return 0
        base, path = found[-1]
        last = 0
        for record in frames_in(path.read_bytes()):
            last = record.end
        return base + last

    def read(self, position: int, end: int, most: int) -> tuple[list[Frame], int]:
        """The whole records from a position on, about `most` bytes of them, and where they end.

        Records that cannot be read are left out, to the end of their segment.
        """
        base, path, limit = self._segment_at(position, end)
        if path is None or position >= limit:
            return [], max(position, min(limit, end))
        with path.open("rb") as file:
            file.seek(position - base)
            data = file.read(min(most, limit - position))
            wanted = length_at(data)
            if wanted is not None and len(data) < wanted <= limit - position:
                data += file.read(wanted - len(data))
        records = list(frames_in(data))
        if records:
            return records, position + records[-1].end
        return [], limit

    def before(self, position: int) -> Iterator[Frame]:
        """The records of the segment of a position that stand before it."""
        base, path, _ = self._segment_at(position, position)
        if path is not None and position > base:
            with path.open("rb") as file:
                yield from frames_in(file.read(position - base))

    def free(self, position: int) -> int:
        """Removes segments that end at or before a position. Answers what is the first now."""
        found = segments_of(self._folder)
        for (_, path), (following, _) in itertools.pairwise(found):
            if following > position:
                break
            path.unlink(missing_ok=True)
        return self.start()

    def _segment_at(self, position: int, end: int) -> tuple[int, Path | None, int]:
        """The segment that a position is in, and where it ends."""
        found = segments_of(self._folder)
        for place, (base, path) in enumerate(found):
            limit = found[place + 1][0] if place + 1 < len(found) else max(end, base)
            if position < limit or place + 1 == len(found):
                return base, path, limit
        return position, None, position
