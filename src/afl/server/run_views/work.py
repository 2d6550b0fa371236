"""The outside work of many steps, read at once: calls, the tasks that answer them, and why those
are not done. A window of rows costs the same few reads whatever it shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from afl.kernel.model import Call, CallStatus, Loss, Task, TaskId, Worker
from afl.runtime.entities import Run
from afl.runtime.history import WORK
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.reasons import Answer
from afl.runtime.seen_facts import SeenFacts
from afl.runtime.step import StepDefinition
from afl.runtime.task_reasons import TaskReasons

#: What is behind the path in the key of the call of a script that comes before a facet's own work.
_SCRIPT = "#script"


@dataclass(frozen=True, slots=True)
class StepWork:
    """What is known of the outside work of a step."""

    call: Call
    #: None if retention has taken it
    task: Task | None
    losses: tuple[Loss, ...]

    @property
    def is_open(self) -> bool:
        return self.call.status is CallStatus.OPEN and self.task is not None


class Works:
    """The outside work of some steps of a run, as it was at one time."""

    def __init__(
        self,
        run: Run,
        facts: SeenFacts,
        works: Mapping[str, StepWork],
    ) -> None:
        self._run = run
        self._facts = facts
        self._works = works
        self._reasons = TaskReasons(facts)

    @property
    def now(self) -> datetime:
        return self._facts.now()

    def of(self, step: StepDefinition) -> StepWork | None:
        """The work of a step; None if it has none, or was done at hand, without a task."""
        return self._works.get(step.path)

    def why(self, work: StepWork) -> Answer:
        """Why open work is not done."""
        return self._reasons.of_call(self._run.id, work.call)

    def worker_of(self, work: StepWork) -> Worker | None:
        """Who has it."""
        task = work.task
        return None if task is None or task.worker is None else self._facts.get_worker(task.worker)

    def is_lost(self, work: StepWork) -> bool:
        """Whether the worker that has it gives no sign of life any more."""
        worker = self.worker_of(work)
        return worker is not None and worker.expires_at <= self.now


def read_works(persistence: PersistenceAPI, run: Run, steps: Iterable[StepDefinition]) -> Works:
    """What is known of the outside work of these steps."""
    kernel = persistence.kernel
    paths = [step.path for step in steps if step.object_type in WORK and not _is_free(step)]
    keys = [key for path in paths for key in (path, path + _SCRIPT)]
    calls = {call.key: call for call in kernel.find_calls(TaskId(run.id), keys)}
    callees = [call.callee for call in calls.values() if call.callee is not None]
    losses: dict[TaskId, tuple[Loss, ...]] = {}
    for loss in kernel.losses_of(callees) if callees else ():
        losses[loss.task] = (*losses.get(loss.task, ()), loss)
    facts = SeenFacts(persistence, calls.values())
    works: dict[str, StepWork] = {}
    for path in paths:
        call = calls.get(path) or calls.get(path + _SCRIPT)
        if call is not None:
            task = None if call.callee is None else facts.get_task(call.callee)
            lost = () if task is None else losses.get(task.id, ())
            works[path] = StepWork(call, task, lost)
    return Works(run, facts, works)


def _is_free(step: StepDefinition) -> bool:
    """Whether nobody was ever asked to do anything for a step."""
    return step.skipped_because is not None or "reused" in step.frame
