"""The tries at the outside work of a step, as far as the rows tell: failures are counted, lost
workers are noted, and the last try is the one that the task is at."""

from __future__ import annotations

from datetime import datetime

from afl.kernel.model import Outcome, ReasonCode, State, Task
from afl.runtime.step import StepDefinition
from afl.server.models.runs import Attempt, StepRow
from afl.server.run_views.work import StepWork, Works

_ENDS = {
    Outcome.SUCCESS: "done",
    Outcome.PARTIAL: "done",
    Outcome.FAILED: "failed",
    Outcome.TIMEOUT: "failed",
    Outcome.CANCELED: "canceled",
}
#: What nobody takes into their hands: it is answered by time, by an event or by a person.
_UNTAKEN = ("timer", "signal", "human")


def count_attempts(step: StepDefinition, work: StepWork | None) -> int:
    """How often the work of a step was begun."""
    if work is not None and work.task is not None:
        task = work.task
        return task.failures + len(work.losses) + _is_at_another(task)
    return int("called" in step.frame)


def attempts_at_hand(row: StepRow, run: str) -> list[Attempt]:
    """The one try at work that was done without a task of its own, by the worker that advanced the
    run. Had that worker been lost, there would be a task."""
    state = row.state if row.state in ("done", "failed", "canceled") else "running"
    return [
        Attempt(
            number=1,
            task=run,
            worker=None,
            state=state,
            started_at=row.started_at,
            ended_at=row.ended_at,
            error=None,
        )
    ]


def attempts_of(works: Works, work: StepWork) -> list[Attempt]:
    """The tries, the first first. When one began is not kept, and of failures only the last error
    is; who a worker was is known while it has the work, and if it was lost with it."""
    task = work.task
    if task is None or task.kind in _UNTAKEN:
        return []
    error = dict(task.error) if isinstance(task.error, dict) else None
    found: list[Attempt] = []

    def add(state: str, **rest: object) -> None:
        fields = {"worker": None, "started_at": None, "ended_at": None, "error": None, **rest}
        number = len(found) + 1
        found.append(
            Attempt.model_validate({"number": number, "task": task.id, "state": state, **fields})
        )

    for loss in work.losses:
        add("lost", worker=loss.worker, ended_at=loss.at)
    for number in range(task.failures):
        is_last = number == task.failures - 1
        ended = _failed_at(task) if is_last else None
        add("failed", error=error if is_last else None, ended_at=ended)
    if _is_at_another(task):
        if task.outcome is not None:
            ended_by = None if _ENDS[task.outcome] == "done" else error
            add(_ENDS[task.outcome], ended_at=task.closed_at, error=ended_by)
        elif task.state is State.RUNNING:
            add("lost" if works.is_lost(work) else "running", worker=task.worker)
        else:
            add("waiting")
    return found


def _failed_at(task: Task) -> datetime | None:
    """When the last failure was: known if it was the end, or as long as nobody tries again."""
    if task.outcome is Outcome.FAILED:
        return task.closed_at
    reason = task.reason
    return reason.since if reason is not None and reason.code is ReasonCode.RETRY else None


def _is_at_another(task: Task) -> bool:
    """Whether there is a try beside those that were lost or have failed."""
    if task.outcome is not None:
        return task.outcome is not Outcome.FAILED
    return task.state in (State.RUNNING, State.WAITING)
