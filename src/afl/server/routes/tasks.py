"""Tasks, dead letters, workers and queues."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from enum import Enum
from typing import Annotated, TypeVar

from fastapi import APIRouter, Query

from afl.kernel.errors import NotFound
from afl.kernel.model import Outcome, State, Task, TaskId, WorkerId
from afl.runtime.task_reasons import TaskReasons
from afl.server.access import EveryOperator, EveryViewer
from afl.server.backend import Work
from afl.server.errors import BadForm
from afl.server.models.base import Page
from afl.server.models.system import QueueView, TaskView, WorkerView
from afl.server.paging import id_cursor, paged
from afl.server.store_reads import store_reads
from afl.server.store_reads.port import INDEXED
from afl.server.system_views import has_gone, live, queue_views, task_view, worker_view

router = APIRouter(prefix="", tags=["tasks"])

#: How far counts go; more is shown as this.
COUNTED = 10_000
#: How long workers are shown that were lost.
_LATELY = timedelta(hours=1)
_MOST_WORKERS = 500
_IN_HAND = 20
E = TypeVar("E", bound=Enum)


@router.get("/tasks")
def list_tasks(
    backend: Work,
    caller: EveryViewer,
    run: str | None = None,
    state: str | None = None,
    outcome: str | None = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Page[TaskView]:
    """Tasks in the order of their ids."""
    wanted = _word(State, state, "state of tasks")
    ended = _word(Outcome, outcome, "outcome of tasks")
    after = id_cursor(cursor)
    found: Sequence[Task]
    if wanted in INDEXED and run is None and ended is None:
        begin = None if after is None else TaskId(after)
        found = store_reads(backend.services.persistence).in_state(wanted, begin, limit + 1)
    else:
        found = backend.client.operations.tasks(
            run=run, state=wanted, outcome=ended, after=after, limit=limit + 1
        )
    return paged(found, limit, task_view, lambda task: task.id)


@router.get("/tasks/{task}")
def get_task(
    backend: Work,
    caller: EveryViewer,
    task: str,
) -> TaskView:
    """One task."""
    persistence = backend.services.persistence
    found = persistence.kernel.get_task(TaskId(task))
    if found is None:
        raise NotFound(f"There is no task {task}. `afl tasks list` shows the tasks there are.")
    is_open = found.state is not State.CLOSED
    return task_view(found, TaskReasons(persistence).of_task(found).sentence if is_open else None)


@router.get("/dead-letters")
def list_dead_letters(
    backend: Work,
    caller: EveryViewer,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Page[TaskView]:
    """Tasks that were given up."""
    found = backend.client.operations.dead_letters(after=id_cursor(cursor), limit=limit + 1)
    return paged(found, limit, task_view, lambda task: task.id)


@router.post("/dead-letters/{task}/redrive")
def redrive(
    backend: Work,
    caller: EveryOperator,
    task: str,
) -> TaskView:
    """Does the work of a dead letter again."""
    made = backend.client.operations.redrive(task)
    backend.services.doorbell.ring([made.list])
    return task_view(made)


@router.get("/workers")
def list_workers(
    backend: Work,
    caller: EveryViewer,
) -> list[WorkerView]:
    """The workers that are there, and those that were lately."""
    persistence = backend.services.persistence
    now = persistence.now()
    found = persistence.kernel.workers_seen(_LATELY, _MOST_WORKERS)
    shown = sorted(
        (each for each in found if not has_gone(each, now)), key=lambda each: (each.name, each.id)
    )
    held = store_reads(persistence).held([each.id for each in shown], _IN_HAND)
    return [worker_view(each, held[each.id], now) for each in shown]


@router.post("/workers/{worker}/drain")
def drain(
    backend: Work,
    caller: EveryOperator,
    worker: str,
) -> WorkerView:
    """Has a worker finish what it has, and end."""
    found = backend.client.operations.drain(worker)
    held = store_reads(backend.services.persistence).held([found.id], _IN_HAND)
    return worker_view(found, held[WorkerId(worker)], backend.services.persistence.now())


@router.get("/queues")
def list_queues(
    backend: Work,
    caller: EveryViewer,
) -> list[QueueView]:
    """The task lists, and what waits in them."""
    persistence = backend.services.persistence
    reads = store_reads(persistence)
    workers = live(persistence.kernel.live_workers(), persistence.now())
    return queue_views(reads.backlogs(COUNTED), reads.totals(COUNTED), workers)


def _word(words: type[E], given: str | None, what: str) -> E | None:
    """The member of this name."""
    if given is None:
        return None
    try:
        return words(given)
    except ValueError:
        names = ", ".join(f"`{each.value}`" for each in words)
        raise BadForm(f"`{given}` is no {what}; use one of {names}.") from None
