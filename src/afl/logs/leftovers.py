"""Spools of workers that died: what they had not shipped is shipped by whoever finds them."""

from __future__ import annotations

import json
import logging
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from afl.logs.segments import SegmentReader
from afl.logs.spool import ABOUT, locked

_log = logging.getLogger("afl.logs")


@dataclass(frozen=True, slots=True)
class Leftover:
    """The spool of a dead worker, which is ours now."""

    id: str
    worker: str
    folder: Path
    reader: SegmentReader
    #: where its records end; what stands behind is torn
    end: int
    _lock_file: int

    def remove(self) -> None:
        """Everything of it is stored."""
        # the lock is the last to go: nobody may take half a folder for a spool
        for path in self.folder.glob("*.seg"):
            path.unlink()
        shutil.rmtree(self.folder)
        os.close(self._lock_file)

    def release(self) -> None:
        """Leaves it to another."""
        os.close(self._lock_file)


def adopt(root: Path, own: str) -> list[Leftover]:
    """Takes the spools below `root` whose workers are gone, all but one's own."""
    found = []
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if folder.name == own or folder.name.startswith(".") or not folder.is_dir():
            continue
        try:
            leftover = _adopted(folder)
        except (OSError, ValueError, KeyError):
            _log.warning("the spool %s cannot be read, and is left alone", folder, exc_info=True)
            continue
        if leftover is not None:
            found.append(leftover)
    return found


def _adopted(folder: Path) -> Leftover | None:
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        file = locked(folder)
    except FileNotFoundError:
        return None  # somebody has just removed it
    if file is None:
        return None
    reader = SegmentReader(folder)
    try:
        if not folder.is_dir():  # removed before the lock was ours
            raise FileNotFoundError(folder)
        return Leftover(
            str(about["spool"]), str(about["worker"]), folder, reader, reader.end(), file
        )
    except FileNotFoundError:
        os.close(file)
        return None
