"""Tasks, workers, queues and schedules as the API tells them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from afl.base.durations import format_duration
from afl.kernel.model import Json, Task, Worker, WorkerState
from afl.kernel.rules import is_live
from afl.runtime.schedule import Firing, Schedule, Times
from afl.server.models.base import JsonMap
from afl.server.models.system import (
    FiringView,
    QueueView,
    ScheduleView,
    TaskView,
    WorkerView,
)
from afl.server.store_reads.port import FOR_NO_WORKER, Backlog, ListTotals


def task_view(task: Task, reason: str | None = None) -> TaskView:
    """A task; the reason is the one in its row, unless a better one is known."""
    step = given(task).get("step")
    noted = None if task.reason is None else task.reason.code.value
    return TaskView(
        id=task.id,
        run=run_of(task),
        step=None if step is None else str(step),
        kind=task.kind,
        name=task.name,
        list=task.list,
        lane=task.lane,
        state=task.state.value,
        outcome=None if task.outcome is None else task.outcome.value,
        worker=task.worker,
        priority=task.priority,
        failures=task.failures,
        crashes=task.crashes,
        reason=reason or noted,
        run_at=task.run_at,
        deadline=task.deadline,
        created_at=task.created_at,
        closed_at=task.closed_at,
        error=_error(task.error),
    )


def given(task: Task) -> Mapping[str, Json]:
    """What a task was made with."""
    return task.input if isinstance(task.input, dict) else {}


def run_of(task: Task) -> str:
    """The run that a task works for: its own, and not the one that everything began with."""
    if task.kind == "flow":
        return task.id
    return str(given(task).get("run") or task.run)


def _error(error: Json) -> JsonMap | None:
    if error is None:
        return None
    found: JsonMap = dict(error) if isinstance(error, dict) else {"message": error}
    return found


def worker_state(worker: Worker, now: datetime, *, is_busy: bool) -> str:
    """Where a worker is, in one word. One whose lease is over is stale until a sweep gives it up;
    then it has failed."""
    if worker.state is WorkerState.ERROR:
        return "failed"
    if worker.expires_at <= now:
        return "stale"
    if worker.state is WorkerState.SHUTDOWN:
        return "draining"
    if is_busy:
        return "busy"
    return "starting" if worker.state is WorkerState.STARTUP else "idle"


def has_gone(worker: Worker, now: datetime) -> bool:
    """Whether a worker has ended as it should."""
    return worker.state is WorkerState.SHUTDOWN and worker.expires_at <= now


def worker_view(worker: Worker, tasks: Sequence[Task], now: datetime) -> WorkerView:
    """A worker, with what it has in hand."""
    return WorkerView(
        id=worker.id,
        name=worker.name,
        host=worker.name,
        group=worker.group,
        service=worker.service,
        lists=list(worker.lists),
        handlers=list(worker.handlers),
        state=worker_state(worker, now, is_busy=bool(tasks)),
        started_at=worker.started_at,
        seen_at=worker.seen_at,
        expires_at=worker.expires_at,
        tasks=[task_view(task) for task in tasks],
    )


def queue_views(
    backlogs: Sequence[Backlog], totals: Sequence[ListTotals], workers: Sequence[Worker]
) -> list[QueueView]:
    """The task lists: those with tasks, and those that a live worker looks into."""
    other = {each.list: each for each in totals if each.list not in FOR_NO_WORKER}
    serving = Counter(name for worker in workers for name in worker.lists)
    names = sorted({each.list for each in backlogs} | other.keys() | serving.keys())
    return [
        _queue(name, backlogs, other.get(name, ListTotals(name)), workers, serving[name])
        for name in names
    ]


def _queue(
    name: str,
    backlogs: Sequence[Backlog],
    total: ListTotals,
    workers: Sequence[Worker],
    serving: int,
) -> QueueView:
    own = [each for each in backlogs if each.list == name]
    oldest = [each.oldest_ready_at for each in own if each.oldest_ready_at is not None]
    return QueueView(
        name=name,
        ready=sum(each.ready for each in own),
        running=total.running,
        waiting=total.queued + sum(each.later for each in own),
        dead=total.dead,
        oldest_ready_at=min(oldest, default=None),
        workers=serving,
        unserved=[facet for each in own for facet in each.unserved(workers)],
    )


def live(workers: Iterable[Worker], now: datetime) -> list[Worker]:
    """Those that may claim."""
    return [worker for worker in workers if is_live(worker, now)]


def schedule_view(
    schedule: Schedule, upcoming: Sequence[datetime], history: Sequence[Firing]
) -> ScheduleView:
    """A schedule, when it fires next, and what became of the last times."""
    kind, spec = _times(schedule.times)
    jitter = schedule.times.jitter
    return ScheduleView(
        name=schedule.name,
        workflow=schedule.workflow,
        program=schedule.program,
        inputs=dict(schedule.inputs),
        kind=kind,
        spec=spec,
        zone=schedule.times.zone,
        overlap=schedule.overlap.value,
        catch_up=schedule.catch_up.value,
        jitter=_span(jitter) if jitter else None,
        paused=schedule.paused,
        owner=schedule.owner,
        labels=dict(schedule.labels),
        next=list(upcoming),
        history=[
            FiringView(at=each.fire_at, outcome=each.outcome.value, run=each.run)
            for each in history
        ],
    )


def _times(times: Times) -> tuple[str, str]:
    if times.cron is not None:
        return "cron", times.cron
    if times.every is not None:
        return "interval", _span(times.every)
    return "once", "" if times.at is None else times.at.isoformat()


def _span(span: timedelta) -> str:
    return format_duration(round(span.total_seconds() * 1000))
