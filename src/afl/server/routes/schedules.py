"""Schedules: what starts runs at its times."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query

from afl.app.run import span_of
from afl.runtime.schedule import CatchUp, Overlap, Schedule, Times
from afl.runtime.scheduling.checking import check_times, moment_in
from afl.runtime.scheduling.times import upcoming
from afl.server.access import EveryDeveloper, EveryOperator, EveryViewer
from afl.server.backend import Backend, Work
from afl.server.models.base import Page
from afl.server.models.runs import RunLine
from afl.server.models.system import BackfillForm, ScheduleForm, ScheduleView
from afl.server.paging import paged
from afl.server.run_views.lines import run_line
from afl.server.system_views import schedule_view

# those that programs declare have a slash in their names
router = APIRouter(prefix="/schedules", tags=["schedules"])

_NEXT = 10
_HISTORY = 20


@router.get("")
def list_schedules(
    backend: Work,
    caller: EveryViewer,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Page[ScheduleView]:
    """The schedules in the order of their names."""
    found = backend.client.schedules.list(after=cursor, limit=limit + 1)
    return paged(found, limit, lambda each: _view(backend, each), lambda each: each.name)


@router.post("", status_code=201)
def create_schedule(
    backend: Work,
    caller: EveryDeveloper,
    form: ScheduleForm,
) -> ScheduleView:
    """Makes a schedule."""
    made = backend.client.schedules.create(
        form.name,
        form.workflow,
        dict(form.inputs),
        cron=form.cron,
        every=form.every,
        at=form.at,
        zone=form.zone,
        jitter=form.jitter,
        overlap=form.overlap or Overlap.SKIP.value,
        catch_up=form.catch_up or CatchUp.LAST.value,
        catch_up_within=form.catch_up_within,
        start=form.start,
        end=form.end,
        program=form.program,
        replace=form.replace,
        labels=form.labels,
    )
    return _view(backend, made)


@router.post("/preview")
def preview_schedule(
    backend: Work,
    caller: EveryViewer,
    form: ScheduleForm,
) -> list[datetime]:
    """When a schedule would fire next; nothing is kept."""
    times = Times(
        form.cron,
        span_of(form.every),
        None if form.at is None else moment_in(form.at, form.zone),
        form.zone,
        jitter=span_of(form.jitter) or timedelta(0),
    )
    check_times(times)
    return list(upcoming(times, backend.services.persistence.now(), _NEXT))


@router.get("/{name:path}")
def get_schedule(
    backend: Work,
    caller: EveryViewer,
    name: str,
) -> ScheduleView:
    """One schedule."""
    return _view(backend, backend.client.schedules.get(name))


@router.post("/{name:path}/pause")
def pause_schedule(
    backend: Work,
    caller: EveryOperator,
    name: str,
) -> ScheduleView:
    """Lets it start nothing."""
    return _view(backend, backend.client.schedules.pause(name))


@router.post("/{name:path}/resume")
def resume_schedule(
    backend: Work,
    caller: EveryOperator,
    name: str,
) -> ScheduleView:
    """Lets it start runs again."""
    return _view(backend, backend.client.schedules.resume(name))


@router.post("/{name:path}/trigger", status_code=201)
def trigger_schedule(
    backend: Work,
    caller: EveryOperator,
    name: str,
) -> RunLine:
    """Starts a run now."""
    started = backend.client.schedules.trigger(name)
    return run_line(backend, backend.client.operations.get(started.id))


@router.post("/{name:path}/backfill")
def backfill_schedule(
    backend: Work,
    caller: EveryOperator,
    name: str,
    form: BackfillForm,
) -> list[datetime]:
    """Runs the fire times of a stretch of time after all."""
    since, until = form.since.isoformat(), form.until.isoformat()
    return list(backend.client.schedules.backfill(name, since, until).missing)


@router.delete("/{name:path}", status_code=204)
def delete_schedule(
    backend: Work,
    caller: EveryDeveloper,
    name: str,
) -> None:
    """Removes a schedule."""
    backend.client.schedules.delete(name)


def _view(backend: Backend, schedule: Schedule) -> ScheduleView:
    persistence = backend.services.persistence
    coming = upcoming(schedule.times, persistence.now(), _NEXT)
    return schedule_view(schedule, coming, persistence.get_firings(schedule.name, limit=_HISTORY))
