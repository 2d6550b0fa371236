"""The kernel's rows that reasons are read from, read at once for many calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from afl.kernel.model import (
    Call,
    CallId,
    Reason,
    ReasonCode,
    Standing,
    State,
    Task,
    TaskId,
    Worker,
    WorkerId,
)
from afl.runtime.persistence import PersistenceAPI


class SeenFacts:
    """What was read of a kernel's rows; what is missing is read when it is asked for, once."""

    def __init__(self, persistence: PersistenceAPI, calls: Iterable[Call]) -> None:
        """Reads the tasks that answer these calls, and those that they wait for in turn."""
        self._persistence = persistence
        self._now = persistence.now()
        self._calls: dict[CallId, Call | None] = {call.id: call for call in calls}
        self._tasks: dict[TaskId, Task | None] = {}
        self._whys: dict[TaskId, Reason | None] = {}
        self._workers: dict[WorkerId, Worker | None] = {}
        self._live: list[Worker] | None = None
        self._running: list[Task] | None = None
        callees = [call.callee for call in self._calls.values() if call and call.callee]
        standing = persistence.kernel.standing(callees) if callees else []
        self._keep(standing)
        behind = [task for each in standing for task in _behind(each)]
        missing = [task for task in dict.fromkeys(behind) if task not in self._tasks]
        if missing:
            self._keep(persistence.kernel.standing(missing))

    def _keep(self, standing: Sequence[Standing]) -> None:
        for each in standing:
            self._tasks[each.task.id] = each.task
            self._whys[each.task.id] = each.reason
            if each.first_open is not None:
                self._calls[each.first_open.id] = each.first_open

    @property
    def kernel(self) -> SeenFacts:
        return self

    def now(self) -> datetime:
        return self._now

    def get_task(self, task: TaskId) -> Task | None:
        if task not in self._tasks:
            self._tasks[task] = self._persistence.kernel.get_task(task)
        return self._tasks[task]

    def get_call(self, call: CallId) -> Call | None:
        if call not in self._calls:
            self._calls[call] = self._persistence.kernel.get_call(call)
        return self._calls[call]

    def why(self, task: TaskId) -> Reason | None:
        if task not in self._whys:
            self._whys[task] = self._persistence.kernel.why(task)
        return self._whys[task]

    def find_tasks(self, *, state: State | None = None, limit: int = 100) -> list[Task]:
        # the only list that reasons ask for is that of what runs
        if self._running is None:
            self._running = self._persistence.kernel.find_tasks(state=state, limit=limit)
        return self._running

    def live_workers(self) -> list[Worker]:
        if self._live is None:
            self._live = self._persistence.kernel.live_workers()
            self._workers.update((worker.id, worker) for worker in self._live)
        return self._live

    def get_worker(self, worker: WorkerId) -> Worker | None:
        self.live_workers()
        if worker not in self._workers:
            self._workers[worker] = self._persistence.kernel.get_worker(worker)
        return self._workers[worker]


def _behind(standing: Standing) -> Iterable[TaskId]:
    """The tasks that one waits for, which its reason names."""
    reason, call = standing.reason, standing.first_open
    if reason is not None and reason.code is ReasonCode.LANE_HELD and reason.by is not None:
        yield TaskId(reason.by)
    if call is not None and call.callee is not None:
        yield call.callee
