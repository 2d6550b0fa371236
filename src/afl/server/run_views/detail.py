"""A run on its own page."""

from __future__ import annotations

from datetime import datetime

from afl.kernel.model import TaskId
from afl.runtime.calls import NO_TIMEOUT
from afl.runtime.entities import Run
from afl.runtime.states import RunState
from afl.server.access import Caller, Role
from afl.server.backend import Backend
from afl.server.models.runs import RunView
from afl.server.run_views.lines import run_line
from afl.server.run_views.whys import why_view


def run_view(backend: Backend, caller: Caller, run: Run) -> RunView:
    """Everything about a run but its steps."""
    # read before the rest, so that a change in between is seen again
    mark = backend.services.persistence.change_mark(run.id)
    line = run_line(backend, run)
    return RunView(
        **{name: getattr(line, name) for name in type(line).model_fields},
        inputs=dict(run.inputs),
        outputs=None if run.outputs is None else dict(run.outputs),
        failure=None if run.error is None else dict(run.error),
        deadline=_deadline(backend, run),
        why=why_view(backend.client.operations.why(run.id)),
        actions=actions_on(run, caller),
        mark=mark,
    )


def actions_on(run: Run, caller: Caller) -> list[str]:
    """What a caller may do with a run as it is."""
    if caller.role < Role.OPERATOR:
        return []
    if not RunState.is_terminal(run.state):
        return ["cancel", "resume" if run.pause_requested else "pause"]
    if run.parent is not None:
        # what it has done belongs to a step of its caller, which is the one to retry
        return ["rerun", "fork"]
    return ["rerun", "fork"] if run.state == RunState.COMPLETED else ["retry", "rerun", "fork"]


def _deadline(backend: Backend, run: Run) -> datetime | None:
    task = backend.services.persistence.kernel.get_task(TaskId(run.id))
    if task is None or task.deadline is None:
        return None
    # a call has always a deadline; one that nobody has asked for lies far ahead
    return None if task.deadline - task.created_at >= NO_TIMEOUT else task.deadline
