"""What belongs to another tenant is as if it were not there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from afl.kernel.model import Task, TaskId
from afl.runtime.entities import Run
from afl.runtime.errors import UnknownRun
from afl.runtime.step import WorkflowId
from afl.server.access import Caller
from afl.server.backend import Backend
from afl.server.system_views import run_of


def seen_run(backend: Backend, caller: Caller, run: str) -> Run:
    """The run, if it is the caller's to see.

    Raises:
        UnknownRun: there is no such run, or it belongs to another tenant.
    """
    found = backend.client.operations.get(run)
    if not caller.sees(found.tenant):
        raise UnknownRun(f"There is no run {run}. `afl runs list` shows the runs there are.")
    return found


def seen_turn(backend: Backend, caller: Caller, turn: str) -> Task:
    """The task of a turn, if it is the caller's to see.

    Raises:
        UnknownRun: there is no such turn, or it belongs to another tenant.
    """
    persistence = backend.services.persistence
    task = persistence.kernel.get_task(TaskId(turn))
    # the tasks of a run do not say whose it is; those that people send to agents do
    run = None if task is None else persistence.get_run(WorkflowId(run_of(task)))
    if (
        task is None
        or task.kind != "turn"
        or not caller.sees(task.tenant if run is None else run.tenant)
    ):
        raise UnknownRun(
            f"There is no turn {turn}. `afl agents turns AGENT` shows those there are."
        )
    return task


def with_runs(
    backend: Backend, sees: Callable[[str], bool], tasks: Sequence[Task]
) -> list[tuple[Task, Run]]:
    """Tasks with the runs that they work for: those of tenants that are to be seen."""
    ids = [WorkflowId(run_of(task)) for task in tasks]
    runs = backend.services.persistence.get_runs(list(dict.fromkeys(ids)))
    return [
        (task, run)
        for task, id_ in zip(tasks, ids, strict=True)
        if (run := runs.get(id_)) is not None and sees(run.tenant)
    ]
