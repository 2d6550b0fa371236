"""What a step was doing when: the parts of its bar on the timeline, as far as it is known.

When a worker took a task is not kept. Known are when the task was made, when its worker was lost,
from when on it could be taken for the attempt that it is at, since when it waits to be tried again,
and when it ended. So an attempt is told with the time that it was in the queue for it, and attempts
that were followed by others, with the waits after them, are told as one part.
"""

from __future__ import annotations

from datetime import datetime

from afl.kernel.model import Outcome, State, Task
from afl.runtime.step_windows import StepTimes
from afl.server.models.runs import PartWord, StepWord, TimePart
from afl.server.run_views.work import StepWork

_UNTAKEN = ("timer", "signal", "human")
#: What is taken once for an attempt. Others are put down and taken up again while they wait.
_TAKEN_ONCE = ("event", "script")
_FAILED = ("failed", "dead_letter")


def parts_of(
    word: StepWord, times: StepTimes, work: StepWork | None, now: datetime
) -> list[TimePart]:
    """The parts of a step in the order of time. The last has no end while it goes on."""
    if word == "skipped":
        return []
    start, end = times.created_at, times.ended_at
    task = None if work is None else work.task
    last: PartWord = "failed" if word in _FAILED else "running"
    if work is None or task is None:
        return [TimePart(part=last, start=start, end=end)]
    if task.kind in _UNTAKEN:
        return [TimePart(part="waiting", start=start, end=end)]
    if task.state in (State.READY, State.QUEUED) and end is None:
        return _not_taken(task, start, tried=bool(task.failures or work.losses), now=now)
    return _taken(task, work, last, start, end)


def _not_taken(task: Task, start: datetime, *, tried: bool, now: datetime) -> list[TimePart]:
    """A task that nobody has: the first time, or again."""
    since = start if task.reason is None else max(start, task.reason.since)
    if not tried:
        # a turn that has been answered was with a worker before
        if task.committed_fence is None:
            return [TimePart(part="queued", start=start, end=None)]
        return [TimePart(part="running", start=start, end=None)]
    until = max(since, task.run_at)
    over = until <= now
    parts = [
        TimePart(part="earlier", start=start, end=since),
        TimePart(part="retry", start=since, end=until if over else None),
    ]
    if over:
        parts.append(TimePart(part="queued", start=until, end=None))
    return [part for part in parts if part.end is None or part.end > part.start]


def _taken(
    task: Task, work: StepWork, last: PartWord, start: datetime, end: datetime | None
) -> list[TimePart]:
    """A task that a worker has, or that has ended."""
    cuts: list[tuple[PartWord, datetime]] = []
    if not task.failures or _is_first_failure(task):
        cuts = [("lost", loss.at) for loss in work.losses]
    if task.kind in _TAKEN_ONCE and task.run_at > task.created_at:
        # what it was taken for before this is over
        cuts.append(("earlier" if _was_tried(task, work) else "queued", task.run_at))
    parts: list[TimePart] = []
    for part, at in cuts:
        if at > start and (end is None or at <= end):
            parts.append(TimePart(part=part, start=start, end=at))
            start = at
    if end is None or end > start or not parts:
        parts.append(TimePart(part=last, start=start, end=end))
    return parts


def _is_first_failure(task: Task) -> bool:
    """Whether the only failure is the one that it ended with."""
    return task.failures == 1 and task.outcome is Outcome.FAILED


def _was_tried(task: Task, work: StepWork) -> bool:
    """Whether there was an attempt before the last one."""
    return bool(work.losses) or (task.failures > 0 and not _is_first_failure(task))
