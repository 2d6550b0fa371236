"""What happened in a run. Nothing is written down for this: it is read from the rows."""

from __future__ import annotations

from datetime import datetime

from afl.runtime.entities import Run
from afl.runtime.history import Happening, Moment
from afl.runtime.step import ROOT, WorkflowId
from afl.server.backend import Backend
from afl.server.errors import BadForm
from afl.server.models.base import JsonMap, Page
from afl.server.models.runs import EventLine
from afl.server.run_views.words import one_line

#: In runs with more steps than this, only what happened to those with an error is told: to put all
#: in order would take too long.
_MOST_STEPS = 100_000
_BETWEEN = "~"
#: Behind and before everything that happens to steps at the same time.
_END, _BEGIN = "\uffff", ""


def events_of(backend: Backend, run: Run, cursor: str | None, limit: int) -> Page[EventLine]:
    """A page of what happened, the newest first."""
    persistence = backend.services.persistence
    id_ = WorkflowId(run.id)
    before = None if cursor is None else _moment(cursor)
    steps = sum(tally.steps for tally in persistence.tally(id_))
    found = persistence.history(
        id_, before=before, problems_only=steps > _MOST_STEPS, limit=limit + 1
    )
    told = [(each.moment, _line(run, each)) for each in found]
    told += [(at, line) for at, line in _of_run(run) if before is None or at < before]
    told.sort(key=lambda each: each[0], reverse=True)
    shown = told[:limit]
    return Page[EventLine](
        items=[line for _, line in shown],
        next=_cursor(shown[-1][0]) if len(told) > limit else None,
    )


def _cursor(moment: Moment) -> str:
    return _BETWEEN.join((moment.at.isoformat(), moment.what, moment.path))


def _moment(cursor: str) -> Moment:
    at, _, rest = cursor.partition(_BETWEEN)
    what, between, path = rest.partition(_BETWEEN)
    try:
        time = datetime.fromisoformat(at)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None or not between:
        raise BadForm(f"`{cursor}` is no cursor of this list. Use what `next` of a page says.")
    return Moment(time, path, what)


def _of_run(run: Run) -> list[tuple[Moment, EventLine]]:
    """How the run itself began and ended."""
    told = []
    if run.created_at is not None:
        text = f"The run of `{run.workflow}` was made."
        told.append((Moment(run.created_at, _BEGIN, ""), _plain(run.created_at, "created", text)))
    if run.finished_at is not None:
        error = one_line(run.error)
        text = f"The run has {run.state}{f': {error}' if error else '.'}"
        told.append((Moment(run.finished_at, _END, ""), _plain(run.finished_at, run.state, text)))
    return told


def _plain(at: datetime, kind: str, text: str) -> EventLine:
    return EventLine(at=at, kind=kind, step=None, task=None, worker=None, text=text, detail={})


def _line(run: Run, happening: Happening) -> EventLine:
    moment = happening.moment
    detail: JsonMap = {"facet": happening.facet_name}
    if happening.error is not None:
        detail["error"] = dict(happening.error)
    return EventLine(
        at=moment.at,
        kind=_KINDS.get(moment.what, moment.what),
        step=moment.path if moment.path != ROOT else None,
        task=happening.task,
        worker=happening.worker,
        text=_text(run, happening),
        detail=detail,
    )


_KINDS = {"done": "finished"}


def _text(run: Run, happening: Happening) -> str:
    path, facet = happening.moment.path, happening.facet_name
    name = f"`{path}` ({facet})" if facet else f"`{path or run.workflow}`"
    match happening.moment.what:
        case "started":
            return f"{name} started."
        case "done" if happening.reused is not None:
            return f"{name} is done: its result was taken from {happening.reused}."
        case "done":
            return f"{name} is done."
        case "failed":
            return f"{name} failed: {one_line(happening.error)}"
        case "skipped":
            return f"{name} was skipped, because `{happening.skipped_because}` failed."
        case "lost":
            return f"{name} lost its worker {happening.worker}; another one gets it."
        case _:
            return f"A result of {name} came too late to count, from {happening.worker}."
