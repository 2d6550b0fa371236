"""Which commit is deadly: known to all workers through a file, so that they count together."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

BEFORE, AFTER = "before", "after"


@dataclass(slots=True)
class State:
    """What the file says."""

    #: the number of the deadly commit, from 1; 0 for none
    at: int = 0
    when: str = BEFORE
    #: what each commit since then was
    commits: list[str] = field(default_factory=list)
    has_fired: bool = False


class Fuse:
    """Counts commits, and tells whoever makes the deadly one. Processes may share a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def arm(self, at: int, when: str = BEFORE) -> None:
        """Starts to count anew."""
        self._path.touch()
        with self._opened() as state:
            state.at, state.when, state.commits, state.has_fired = at, when, [], False

    def count(self, what: str) -> str | None:
        """Counts a commit. Tells when its process is to die; None if it is not."""
        with self._opened() as state:
            state.commits.append(what)
            if state.has_fired or len(state.commits) != state.at:
                return None
            state.has_fired = True
            return state.when

    def read(self) -> State:
        with self._opened() as state:
            return state

    @contextmanager
    def _opened(self) -> Iterator[State]:
        with self._path.open("r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            text = file.read()
            state = State(**json.loads(text)) if text else State()
            yield state
            file.seek(0)
            file.write(json.dumps(asdict(state)))
            file.truncate()
