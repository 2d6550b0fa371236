"""Runs: find, start, and look at one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from afl.runtime.step import WorkflowId
from afl.server.access import Operator, Viewer
from afl.server.backend import Work
from afl.server.models.base import JsonMap, Page
from afl.server.models.runs import (
    Lineage,
    RunCounts,
    RunLine,
    RunView,
    RunWord,
    SubmitForm,
    Submitted,
    Superseded,
    WhyView,
)
from afl.server.paging import id_cursor
from afl.server.run_views import submitting
from afl.server.run_views.detail import run_view
from afl.server.run_views.lineage import lineage_of, superseded_of
from afl.server.run_views.lines import counts_of, filter_of, run_lines
from afl.server.run_views.whys import why_view
from afl.server.seeing import seen_run

router = APIRouter(prefix="/runs", tags=["runs"])

Labels = Annotated[list[str] | None, Query(description="`name=value`; several must all hold.")]
Text = Annotated[str | None, Query(description="In the id, the key, the workflow or the error.")]
Parent = Annotated[
    str | None,
    Query(description="The runs that this run called; `none` for those that nobody called."),
]


@router.get("")
def list_runs(
    backend: Work,
    caller: Viewer,
    state: RunWord | None = None,
    workflow: str | None = None,
    label: Labels = None,
    text: Text = None,
    since: datetime | None = None,
    until: datetime | None = None,
    parent: Parent = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Page[RunLine]:
    """Runs, the newest first."""
    wanted = filter_of(
        caller,
        state=state,
        workflow=workflow,
        labels=label or (),
        text=text,
        since=since,
        until=until,
        parent=parent,
    )
    before = id_cursor(cursor)
    found = backend.services.persistence.search_runs(
        wanted, before=None if before is None else WorkflowId(before), limit=limit + 1
    )
    return Page[RunLine](
        items=run_lines(backend, found[:limit]),
        next=found[limit - 1].id if len(found) > limit else None,
    )


@router.get("/counts")
def count_runs(
    backend: Work,
    caller: Viewer,
    workflow: str | None = None,
    label: Labels = None,
    text: Text = None,
    since: datetime | None = None,
    until: datetime | None = None,
    parent: Parent = None,
) -> RunCounts:
    """How many runs there are in each state under the same filters."""
    wanted = filter_of(
        caller,
        workflow=workflow,
        labels=label or (),
        text=text,
        since=since,
        until=until,
        parent=parent,
    )
    return counts_of(backend, wanted)


@router.post("", status_code=201)
def submit(
    backend: Work,
    caller: Operator,
    form: SubmitForm,
) -> Submitted:
    """Starts a run. With a key, the same request again finds the same run."""
    return submitting.submit(backend, caller, form)


@router.get("/{run}")
def get_run(
    backend: Work,
    caller: Viewer,
    run: str,
) -> RunView:
    """A run as its page shows it."""
    return run_view(backend, caller, seen_run(backend, caller, run))


@router.get("/{run}/why")
def why(
    backend: Work,
    caller: Viewer,
    run: str,
    step: str | None = None,
) -> WhyView:
    """Why a run, or a step of it, is where it is."""
    found = seen_run(backend, caller, run)
    return why_view(backend.client.operations.why(found.id, step))


@router.get("/{run}/lineage")
def lineage(
    backend: Work,
    caller: Viewer,
    run: str,
) -> Lineage:
    """Its caller, what it was forked from, its forks, and the runs that it called."""
    return lineage_of(backend, caller, seen_run(backend, caller, run))


@router.get("/{run}/superseded")
def superseded(
    backend: Work,
    caller: Viewer,
    run: str,
) -> list[Superseded]:
    """Results that came too late to count."""
    return superseded_of(backend, seen_run(backend, caller, run))


@router.get("/{run}/export")
def export(
    backend: Work,
    caller: Viewer,
    run: str,
) -> JsonMap:
    """Everything that is known of a run, for a bug report."""
    return backend.client.operations.export(seen_run(backend, caller, run).id)
