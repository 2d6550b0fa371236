"""What is stored, field by field: for clients that work on a server as they would on its database.

Pages have shapes of their own; these are the engine's, as `--json` of the commands shows them.
Spans of time are in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, cast

from fastapi import APIRouter, Query
from pydantic import JsonValue

from afl.app.remote.records import encode
from afl.kernel.errors import NotFound
from afl.kernel.model import Outcome, State, Task, TaskId, WorkerId
from afl.runtime.entities import Run
from afl.runtime.errors import UnknownWorker
from afl.runtime.inbox import InboxItem
from afl.runtime.persistence import Needed
from afl.server.access import Caller, EveryOperator, EveryViewer, Viewer
from afl.server.backend import Backend, Work
from afl.server.errors import BadForm
from afl.server.models.base import JsonMap
from afl.server.models.system import BackfillForm
from afl.server.seeing import seen_run

router = APIRouter(prefix="/records", tags=["records"])

_MOST = 1000
Limit = Annotated[int, Query(ge=1, le=_MOST)]


def _record(value: object) -> JsonMap:
    return cast("JsonMap", encode(value))


def _records(values: object) -> list[JsonMap]:
    return cast("list[JsonMap]", encode(values))


@router.get("/now")
def now(
    backend: Work,
    caller: Viewer,
) -> str:
    """The time by the store's clock."""
    return str(encode(backend.services.persistence.now()))


@router.get("/runs")
def list_runs(
    backend: Work,
    caller: Viewer,
    state: str | None = None,
    workflow: str | None = None,
    label: Annotated[
        list[str] | None, Query(description="`name=value`; several must all hold.")
    ] = None,
    parent: str | None = None,
    before: str | None = None,
    limit: Limit = 100,
) -> list[JsonMap]:
    """Runs, the newest first, from before the given one."""
    labels = dict(_label(each) for each in label or ())
    found = _runs(backend, caller, state, workflow, labels, parent, before)
    return _records(list(islice(found, limit)))


def _runs(
    backend: Backend,
    caller: Caller,
    state: str | None,
    workflow: str | None,
    labels: dict[str, str],
    parent: str | None,
    before: str | None,
) -> Iterator[Run]:
    """Those that are the caller's to see."""
    while True:
        page = backend.client.operations.list(
            state=state,
            workflow=workflow,
            labels=labels or None,
            parent=parent,
            before=before,
            limit=_MOST,
        )
        yield from (run for run in page if caller.sees(run.tenant))
        if len(page) < _MOST:
            return
        before = page[-1].id


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise BadForm(f"`{text}` is no label; write it as `name=value`.")
    return name, value


@router.get("/runs/{run}")
def get_run(
    backend: Work,
    caller: Viewer,
    run: str,
) -> JsonMap:
    """One run."""
    return _record(seen_run(backend, caller, run))


@router.get("/runs/{run}/why")
def why(
    backend: Work,
    caller: Viewer,
    run: str,
    step: str | None = None,
) -> JsonMap:
    """Why a run, or a step of it, is where it is."""
    return _record(backend.client.operations.why(seen_run(backend, caller, run).id, step))


@router.get("/runs/{run}/tree")
def tree(
    backend: Work,
    caller: Viewer,
    run: str,
    after: str | None = None,
    limit: Limit = 200,
) -> JsonMap:
    """A page of the steps of a run, nested."""
    id_ = seen_run(backend, caller, run).id
    return _record(backend.client.operations.tree(id_, after=after, limit=limit))


@router.get("/runs/{run}/steps")
def steps(
    backend: Work,
    caller: Viewer,
    run: str,
    path: Annotated[list[str] | None, Query(description="The steps at these paths.")] = None,
    state: Annotated[str | None, Query(description="The steps in this state instead.")] = None,
    limit: Limit = 100,
) -> list[JsonMap]:
    """Steps of a run as they are stored."""
    id_ = seen_run(backend, caller, run).id
    persistence = backend.services.persistence
    if state is not None:
        return _records(persistence.get_steps_by_state(id_, state, limit))
    wanted = Needed(steps=frozenset(path or ()))
    return _records(list(persistence.load(id_, wanted).steps.values()))


@router.get("/runs/{run}/call")
def call(
    backend: Work,
    caller: Viewer,
    run: str,
    key: Annotated[str, Query(description="The path of the step that calls.")],
) -> JsonMap | None:
    """The call of a step, if it has made one."""
    id_ = seen_run(backend, caller, run).id
    found = backend.services.persistence.kernel.find_call(TaskId(id_), key)
    return None if found is None else _record(found)


@router.get("/runs/{run}/superseded")
def superseded(
    backend: Work,
    caller: Viewer,
    run: str,
    limit: Limit = 100,
) -> list[JsonMap]:
    """Results that came too late to count."""
    id_ = seen_run(backend, caller, run).id
    return _records(backend.client.operations.superseded(id_, limit=limit))


@router.get("/inbox")
def list_inbox(
    backend: Work,
    caller: Viewer,
    group: str | None = None,
    after: str | None = None,
    limit: Limit = 100,
) -> list[JsonMap]:
    """What waits for an answer, the oldest first."""
    kernel, inbox = backend.services.persistence.kernel, backend.client.operations.inbox
    found: list[InboxItem] = []
    while len(found) < limit and (page := inbox.list(group, after=after, limit=limit)):
        for item in page:
            task = kernel.get_task(TaskId(item.task))
            if task is not None and caller.sees(task.tenant):
                found.append(item)
        after = page[-1].task
    return _records(found[:limit])


@router.get("/tasks")
def list_tasks(
    backend: Work,
    caller: EveryViewer,
    run: str | None = None,
    state: State | None = None,
    outcome: Outcome | None = None,
    after: str | None = None,
    limit: Limit = 100,
) -> list[JsonMap]:
    """Tasks in the order of their ids."""
    found = backend.client.operations.tasks(
        run=run, state=state, outcome=outcome, after=after, limit=limit
    )
    return _records(found)


@router.get("/tasks/{task}")
def get_task(
    backend: Work,
    caller: EveryViewer,
    task: str,
) -> JsonMap:
    """One task."""
    return _record(_task(backend, task))


@router.get("/tasks/{task}/why")
def why_task(
    backend: Work,
    caller: EveryViewer,
    task: str,
) -> JsonMap:
    """Why a task is where it is."""
    return _record(backend.client.operations.why_task(_task(backend, task)))


def _task(backend: Backend, task: str) -> Task:
    found = backend.services.persistence.kernel.get_task(TaskId(task))
    if found is None:
        raise NotFound(f"There is no task {task}. `afl tasks list` shows the tasks there are.")
    return found


@router.get("/dead-letters")
def list_dead_letters(
    backend: Work,
    caller: EveryViewer,
    after: str | None = None,
    limit: Limit = 100,
) -> list[JsonMap]:
    """Tasks that were given up."""
    return _records(backend.client.operations.dead_letters(after=after, limit=limit))


@router.get("/workers")
def list_workers(
    backend: Work,
    caller: EveryViewer,
) -> list[JsonMap]:
    """The workers that are there."""
    return _records(backend.client.operations.workers())


@router.get("/workers/{worker}")
def get_worker(
    backend: Work,
    caller: EveryViewer,
    worker: str,
) -> JsonMap:
    """One worker, also one that is gone."""
    found = backend.services.persistence.kernel.get_worker(WorkerId(worker))
    if found is None:
        raise UnknownWorker(
            f"There is no worker {worker}. `afl workers list` shows those that are there."
        )
    return _record(found)


@router.get("/schedules")
def list_schedules(
    backend: Work,
    caller: EveryViewer,
    after: str | None = None,
    limit: Limit = 100,
) -> list[JsonMap]:
    """The schedules in the order of their names."""
    return _records(backend.client.operations.schedules.list(after=after, limit=limit))


@router.get("/schedules/{name:path}/next")
def next_times(
    backend: Work,
    caller: EveryViewer,
    name: str,
    count: Limit = 5,
) -> list[JsonValue]:
    """The coming fire times."""
    times = backend.client.operations.schedules.next(name, count)
    return cast("list[JsonValue]", encode(times))


@router.get("/schedules/{name:path}/firings")
def firings(
    backend: Work,
    caller: EveryViewer,
    name: str,
    started: bool = False,
    limit: Limit = 100,
) -> list[JsonMap]:
    """What became of its fire times, the last first."""
    found = backend.client.operations.schedules.get(name)
    persistence = backend.services.persistence
    return _records(persistence.get_firings(found.name, started=started, limit=limit))


@router.post("/schedules/{name:path}/backfill")
def backfill(
    backend: Work,
    caller: EveryOperator,
    name: str,
    form: BackfillForm,
    dry_run: bool = False,
) -> JsonMap:
    """Runs the fire times of a stretch of time after all, and tells of each; a dry run only
    tells."""
    schedules = backend.client.operations.schedules
    return _record(schedules.backfill(name, form.since, form.until, dry_run=dry_run))


# behind the others: names may have slashes
@router.get("/schedules/{name:path}")
def get_schedule(
    backend: Work,
    caller: EveryViewer,
    name: str,
) -> JsonMap:
    """One schedule."""
    return _record(backend.client.operations.schedules.get(name))
