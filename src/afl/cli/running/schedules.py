"""Schedules as commands show them, for people and as JSON."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from afl.base.durations import format_duration
from afl.cli.running.tables import local
from afl.kernel.model import Json
from afl.runtime.entities import Run
from afl.runtime.operations import Operations
from afl.runtime.schedule import Firing, Outcome, Schedule
from afl.runtime.scheduling.checking import times_text
from afl.runtime.step import WorkflowId
from afl.runtime.views import state_word


def last_run(operations: Operations, schedule: Schedule) -> Run | None:
    """The run that it has started last, if that is kept."""
    found = operations.schedules.last_run(schedule.name)
    return None if found is None else operations.persistence.get_run(WorkflowId(found))


def schedule_json(schedule: Schedule, run: Run | None) -> dict[str, Json]:
    """The form of `schedules.schema.json`."""
    times = schedule.times
    return {
        "name": schedule.name,
        "state": schedule.state,
        "workflow": schedule.workflow,
        "program": schedule.program,
        "inputs": dict(schedule.inputs),
        "cron": times.cron,
        "every_ms": None if times.every is None else round(times.every.total_seconds() * 1000),
        "at": _iso(times.at),
        "zone": times.zone,
        "start": _iso(times.start),
        "end": _iso(times.end),
        "jitter_ms": round(times.jitter.total_seconds() * 1000),
        "overlap": schedule.overlap.value,
        "catch_up": schedule.catch_up.value,
        "catch_up_within_ms": round(schedule.catch_up_within.total_seconds() * 1000),
        "labels": dict(schedule.labels),
        "declared_by": schedule.owner,
        "next_fire": None if schedule.paused else _iso(schedule.next_fire),
        "waiting": _iso(schedule.waiting),
        "last_run": None if run is None else {"id": run.id, "state": state_word(run)},
    }


def firing_json(firing: Firing) -> dict[str, Json]:
    """What became of fire times."""
    return {
        "fire_time": _iso(firing.fire_at),
        "until": _iso(firing.until or firing.fire_at),
        "count": firing.count,
        "outcome": firing.outcome.value,
        "run": firing.run,
        "note": firing.note,
        "at": _iso(firing.at),
    }


def fire_time_json(moment: datetime, zone: str) -> dict[str, Json]:
    """A fire time, in its zone and in UTC."""
    return {"local": moment.astimezone(ZoneInfo(zone)).isoformat(), "utc": moment.isoformat()}


def in_zone(moment: datetime | None, zone: str) -> str:
    """A time on the wall of a zone, with its offset."""
    if moment is None:
        return ""
    return f"{moment.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M:%S %z}"


def shown_lines(schedule: Schedule, run: Run | None) -> list[tuple[str, str]]:
    """All of a schedule, as names and values; those without a value are left out by the caller."""
    times = schedule.times
    within = ""
    if schedule.catch_up.value == "all":
        within = (
            f" within {format_duration(round(schedule.catch_up_within.total_seconds() * 1000))}"
        )
    jitter = format_duration(round(times.jitter.total_seconds() * 1000)) if times.jitter else ""
    return [
        ("name", schedule.name),
        ("state", schedule.state),
        ("workflow", schedule.workflow),
        ("program", schedule.program),
        ("when", times_text(times)),
        ("zone", times.zone),
        ("start", in_zone(times.start, times.zone)),
        ("end", in_zone(times.end, times.zone)),
        ("jitter", jitter),
        ("overlap", schedule.overlap.value),
        ("catch-up", f"{schedule.catch_up.value}{within}"),
        ("labels", " ".join(f"{name}={text}" for name, text in schedule.labels.items())),
        ("declared", "" if schedule.owner is None else f"by the deployment {schedule.owner}"),
        ("next", "" if schedule.paused else in_zone(schedule.next_fire, times.zone)),
        ("waiting", in_zone(schedule.waiting, times.zone)),
        ("last run", "" if run is None else f"{run.id} {state_word(run)}"),
    ]


def firing_row(firing: Firing) -> tuple[str, ...]:
    """A row of a table: fire time, outcome, how many, run, why."""
    several = firing.outcome is Outcome.MISSED and firing.count > 1
    until = f" to {local(firing.until)}" if several else ""
    return (
        f"{local(firing.fire_at)}{until}",
        firing.outcome.value,
        str(firing.count),
        firing.run or "",
        firing.note,
    )


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
