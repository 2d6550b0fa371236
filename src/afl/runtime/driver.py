"""Advances runs and serves tasks on any store, in one thread, always in the same order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Protocol

from afl.base.ids import IdSource
from afl.kernel.model import (
    CallStatus,
    Claim,
    Close,
    Commit,
    State,
    Task,
    TaskId,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.port import Store
from afl.runtime.calls import EXECUTE
from afl.runtime.evaluator import Evaluator, Turn
from afl.runtime.operations import Operations
from afl.runtime.persistence import PersistenceAPI

#: How long a worker is believed to be there without a sign of life.
LEASE = timedelta(minutes=1)
_PAGE = 1000
_CALLERS = ("flow", "turn")
_OPEN = (State.QUEUED, State.READY, State.RUNNING, State.WAITING)
#: Kinds of tasks that nobody serves: they are answered by time or from outside.
_UNSERVED = ("flow", "timer", "signal", "pause", "budget")

Work = Callable[[Task], Close]
#: Who does a task; None if nobody here does such work.
Find = Callable[[Task], Work | None]
#: Carries out the commit of a task, and may die before or after it.
AroundCommit = Callable[[Task, Callable[[], None]], None]


class Turns(Protocol):
    """What goes on with turns of models."""

    def serves(self, task: Task) -> bool: ...
    def run(self, claim: Claim) -> None: ...
    def wake(self) -> int: ...


def carry_out(task: Task, commit: Callable[[], None]) -> None:
    """Commits, and nothing else."""
    commit()


class Driver:
    """A worker without threads. `restart` makes it another one that knows nothing."""

    def __init__(
        self,
        store: PersistenceAPI,
        find: Find,
        ids: IdSource,
        *,
        around_commit: AroundCommit = carry_out,
    ) -> None:
        self._store = store
        self._find = find
        self._ids = ids
        self._around_commit = around_commit
        #: who answers prompts that nobody else serves
        self.turns: Turns | None = None
        self.restart()

    @property
    def kernel(self) -> Store:
        return self._store.kernel

    def restart(self) -> None:
        """Forgets all that a process would: another worker goes on."""
        self.evaluator = Evaluator(self._store, ids=self._ids)
        self.operations = Operations(self._store, self.evaluator, ids=self._ids)
        self._worker = WorkerId(f"driver-{self._ids.new_id()}")
        spec = WorkerSpec(self._worker, "driver", handlers=(EXECUTE,), lease=LEASE)
        self.kernel.register(spec)

    def drive(self) -> None:
        """Goes on until nothing can at this time."""
        while True:
            self.kernel.renew(self._worker)
            moved = self.kernel.sweep().total + self.operations.deliver_events()
            moved += 0 if self.turns is None else self.turns.wake()
            moved += sum([self._advance(task) for task in self._ready() if task.kind == "flow"])
            moved += sum([self._do(task) for task in self._ready() if task.kind not in _UNSERVED])
            if not moved:
                return

    def unserved(self) -> list[Task]:
        """Tasks that could be done now, and nobody here does."""
        return [task for task in self._ready() if task.kind not in _UNSERVED]

    def _ready(self) -> list[Task]:
        found: list[Task] = []
        after: TaskId | None = None
        while page := self.kernel.find_tasks(state=State.READY, after=after, limit=_PAGE):
            found += page
            after = page[-1].id
        now = self._store.now()
        return [task for task in found if task.run_at <= now]

    def _advance(self, task: Task) -> bool:
        claim = self.kernel.take(self._worker, task.id)
        if claim is None:
            return False
        turn = self.evaluator.evaluate(claim)
        self._commit_turn(claim, turn)
        while turn.goes_on:
            turn = self.evaluator.go_on(turn)
            self._commit_turn(claim, turn)
        return True

    def _commit_turn(self, claim: Claim, turn: Turn) -> None:
        def commit() -> None:
            self.kernel.commit(
                [turn.commit], writes=lambda transaction: self.evaluator.write(transaction, turn)
            )

        self._around_commit(claim.task, commit)
        self.evaluator.accepted(turn)

    def _do(self, task: Task) -> bool:
        work = self._find(task)
        if work is None and self.turns is not None and self.turns.serves(task):
            taken = self.kernel.take(self._worker, task.id)
            if taken is not None:
                self.turns.run(taken)
            return taken is not None
        claim = None if work is None else self.kernel.take(self._worker, task.id)
        if work is None or claim is None:
            return False
        commit = Commit(claim.fence, work(claim.task))
        self._around_commit(claim.task, lambda: self._commit(commit))
        return True

    def _commit(self, commit: Commit) -> None:
        self.kernel.commit([commit])


def next_due(kernel: Store, now: datetime) -> datetime | None:
    """When something happens next by itself: a delay, a deadline or a timer ends."""
    return min((due for due in _dues(kernel) if due > now), default=None)


def _dues(kernel: Store) -> Iterator[datetime]:
    for state in _OPEN:
        page = kernel.find_tasks(state=state, limit=_PAGE)
        while page:
            for task in page:
                if task.state is State.READY:
                    yield task.run_at
                if task.deadline is not None:
                    yield task.deadline
                for call in kernel.calls_of(task.id) if task.kind in _CALLERS else ():
                    if call.status is CallStatus.OPEN:
                        yield call.deadline
            page = kernel.find_tasks(state=state, after=page[-1].id, limit=_PAGE)
