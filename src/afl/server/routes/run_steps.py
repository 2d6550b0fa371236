"""The steps of a run: counts, windows of rows, the graph, one step, events."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from afl.server.access import Viewer
from afl.server.backend import Work
from afl.server.models.base import Page
from afl.server.models.runs import (
    EventLine,
    GraphView,
    Payload,
    RowPage,
    RunSummary,
    StepView,
    StepWord,
)
from afl.server.run_views.events import events_of
from afl.server.run_views.rows import Wanted, Windows
from afl.server.run_views.step import step_payload, step_view
from afl.server.run_views.summary import graph_of, summary_of
from afl.server.seeing import seen_run

router = APIRouter(prefix="/runs/{run}", tags=["runs"])


@router.get("/summary")
def summary(
    backend: Work,
    caller: Viewer,
    run: str,
) -> RunSummary:
    """The steps counted by statement and state, without counting them."""
    return summary_of(backend, seen_run(backend, caller, run))


@router.get("/rows")
def rows(
    backend: Work,
    caller: Viewer,
    run: str,
    parent: Annotated[str, Query(description="Rows right below this path.")] = "",
    state: Annotated[
        list[StepWord] | None, Query(description="Rows in these states, anywhere in the run.")
    ] = None,
    facet: str | None = None,
    text: str | None = None,
    statement: Annotated[
        str | None, Query(description="Rows of the statement with this id, anywhere in the run.")
    ] = None,
    offset: Annotated[
        int | None,
        Query(ge=0, description="Rows from this number on, for a parent whose total is known."),
    ] = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> RowPage:
    """A window of rows: those below a parent, or those that match."""
    windows = Windows(backend, seen_run(backend, caller, run))
    wanted = Wanted(frozenset(state) if state else None, facet, text, statement)
    if wanted.is_set:
        return windows.matching(wanted, cursor, limit)
    return windows.below(parent, offset, cursor, limit)


@router.get("/graph")
def graph(
    backend: Work,
    caller: Viewer,
    run: str,
) -> GraphView:
    """The definition graph with state counts."""
    return graph_of(backend, seen_run(backend, caller, run))


@router.get("/events")
def events(
    backend: Work,
    caller: Viewer,
    run: str,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Page[EventLine]:
    """What happened in the run, the newest first."""
    return events_of(backend, seen_run(backend, caller, run), cursor, limit)


@router.get("/step")
def step(
    backend: Work,
    caller: Viewer,
    run: str,
    path: Annotated[str, Query(description="The path of the step.")],
) -> StepView:
    """One step with its input, output and attempts; large values are cut."""
    return step_view(backend, caller, seen_run(backend, caller, run), path)


@router.get("/step/input")
def step_input(
    backend: Work,
    caller: Viewer,
    run: str,
    path: str,
) -> Payload:
    """The whole input of a step."""
    return step_payload(backend, seen_run(backend, caller, run), path, output=False)


@router.get("/step/output")
def step_output(
    backend: Work,
    caller: Viewer,
    run: str,
    path: str,
) -> Payload:
    """The whole output of a step."""
    return step_payload(backend, seen_run(backend, caller, run), path, output=True)
