"""Results on this machine's disk, while the database is away.

A worker that is killed before the database is back would lose what its handlers have come to. So
each result is written down, and whoever starts next with the same folder tells it. The fence
decides: it is adopted, or somebody else has done the work by then and it is kept as too late. A
file belongs to one process, which has it locked as long as it lives.
"""

from __future__ import annotations

import fcntl
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import quote

from afl.kernel.errors import Fenced
from afl.kernel.model import Close, Commit, Fence, Json, Outcome
from afl.kernel.working.hands import Held
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.step import WorkflowId
from afl.runtime.superseded import Superseded
from afl.runtime.working.outcomes import reply_of, run_of, step_of

_log = logging.getLogger("afl.worker")
_ENDING = ".results"


@dataclass(frozen=True, slots=True)
class Spooled:
    """A result that was written down."""

    fence: Fence
    worker: str
    run: str | None
    path: str | None
    close: Close

    def as_line(self) -> str:
        close = self.close
        told: dict[str, Json] = {
            "fence": self.fence,
            "worker": self.worker,
            "run": self.run,
            "path": self.path,
            "outcome": close.outcome.value,
            "result": close.result,
            "error": close.error,
            "permanent": close.permanent,
        }
        return json.dumps(told) + "\n"

    @classmethod
    def of_line(cls, line: str) -> Spooled:
        told = json.loads(line)
        close = Close(
            Outcome(told["outcome"]), told["result"], told["error"], bool(told["permanent"])
        )
        return cls(Fence(told["fence"]), told["worker"], told["run"], told["path"], close)


class ResultSpool:
    """The results of one worker. Used by the dispatcher's thread alone."""

    def __init__(self, folder: Path, worker: str) -> None:
        self._path = folder / f"{quote(worker, safe='')}{_ENDING}"
        self._worker = worker
        self._file: IO[str] | None = None
        self._kept: set[Fence] = set()

    def keep(self, held: Held, close: Close) -> None:
        """Writes a result down, once. It outlives this process; that the machine dies, too, it need
        not: then the work is done again."""
        if held.fence in self._kept:
            return
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("w", encoding="utf-8")
            fcntl.flock(self._file, fcntl.LOCK_EX)
        task = held.claim.task
        line = Spooled(held.fence, self._worker, run_of(task), step_of(task), close).as_line()
        self._file.write(line)
        self._file.flush()
        self._kept.add(held.fence)

    def clear(self) -> None:
        """The database has everything."""
        if self._file is not None:
            self._path.unlink(missing_ok=True)
            self._file.close()
            self._file = None
            self._kept.clear()


def tell_leftovers(folder: Path, persistence: PersistenceAPI) -> int:
    """Tells the database what workers that are gone have left in a folder; how much was adopted."""
    adopted = 0
    for path in sorted(folder.glob(f"*{_ENDING}")):
        with _taken(path) as file:
            if file is None:
                continue
            adopted += sum(_adopt(persistence, each) for each in _read(file))
            path.unlink(missing_ok=True)
    return adopted


@contextmanager
def _taken(path: Path) -> Iterator[IO[str] | None]:
    """A file whose process is gone; None if it is not, or somebody else was faster."""
    with suppress(FileNotFoundError), path.open(encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield file
        return
    yield None


def _read(file: IO[str]) -> Iterator[Spooled]:
    for line in file:
        try:
            yield Spooled.of_line(line)
        except (ValueError, KeyError, TypeError):
            # the last one was being written; nobody was told that it was there
            _log.warning("a result was cut off in %s", file.name)


def _adopt(persistence: PersistenceAPI, found: Spooled) -> bool:
    try:
        persistence.kernel.commit([Commit(found.fence, found.close)])
    except Fenced:
        if found.run is not None and found.path is not None:
            status, body = reply_of(found.close)
            late = Superseded(WorkflowId(found.run), found.path, found.worker, status, body)
            persistence.note_superseded([late])
        return False
    return True
