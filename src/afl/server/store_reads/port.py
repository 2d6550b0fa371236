"""What pages about the whole installation ask of a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from afl.kernel.model import State, Task, TaskId, Worker, WorkerId
from afl.kernel.rules import serves
from afl.runtime.calls import BUDGETS, PEOPLE, SIGNALS, TIMERS

#: Lists that no worker claims from.
FOR_NO_WORKER = (TIMERS, SIGNALS, PEOPLE, BUDGETS)
#: The states whose tasks are found without a look at others.
INDEXED = (State.QUEUED, State.READY, State.RUNNING)


@dataclass(frozen=True, slots=True)
class Backlog:
    """The tasks of one short name in one list that nobody has claimed; counts stop at a cap."""

    list: str
    short_name: str
    #: the full names of those that have waited longest
    names: tuple[str, ...]
    #: how many may be claimed now
    ready: int
    #: how many have a time that has not come, such as that of a retry
    later: int
    oldest_ready_at: datetime | None

    def unserved(self, workers: Iterable[Worker]) -> tuple[str, ...]:
        """The names that none of these live workers serves."""
        if not self.ready:
            return ()
        there = [worker for worker in workers if self.list in worker.lists]
        return tuple(
            name
            for name in self.names
            if not any(serves(worker.handlers, name) for worker in there)
        )


@dataclass(frozen=True, slots=True)
class ListTotals:
    """What else there is of a list; counts stop at a cap that all lists share."""

    list: str
    running: int = 0
    #: those whose lane another task holds
    queued: int = 0
    #: given up, and not driven again
    dead: int = 0


class StoreReads(Protocol):
    """Threads may share one."""

    def backlogs(self, cap: int) -> list[Backlog]:
        """What waits for workers, in order of lists and names; also what was empty since."""
        ...

    def totals(self, cap: int) -> list[ListTotals]:
        """The rest of what lists have, in order of their names."""
        ...

    def held(self, workers: Sequence[WorkerId], each: int) -> Mapping[WorkerId, list[Task]]:
        """What these workers have in hand, up to so many tasks of each."""
        ...

    def oldest(self, list: str, short_name: str, limit: int) -> list[Task]:
        """The tasks of a list and name that may be claimed, the one that has waited longest
        first."""
        ...

    def in_state(self, state: State, after: TaskId | None, limit: int) -> list[Task]:
        """Tasks that are queued, ready or running, in the order of their ids from after the given
        one. What it costs does not depend on the others."""
        ...

    def runs_mark(self) -> str:
        """A text that differs when a run was made, has begun, was paused or has ended."""
        ...

    def logs_mark(self, run: str) -> str:
        """A text that differs when one of the streams that a run has opened last says more."""
        ...
