"""Schedules to rows and back. Column lists and readers are halves of one thing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from afl.kernel.postgres.packing import interval
from afl.kernel.postgres.rows import utc
from afl.runtime.postgres.rows import dumps
from afl.runtime.run_values import map_in
from afl.runtime.schedule import CatchUp, Firing, Outcome, Overlap, Schedule, Times

_COLUMNS = (
    "name",
    "workflow",
    "program",
    "inputs",
    "cron",
    "every",
    "at",
    "zone",
    "starts_at",
    "ends_at",
    "jitter",
    "overlap",
    "catch_up",
    "catch_up_within",
    "owner",
    "paused",
    "next_fire",
    "waiting",
    "look_at",
    "version",
    "created_at",
    "labels",
)
SCHEDULE_COLUMNS = ", ".join(f"c.{name}" for name in _COLUMNS)
DUE_COLUMNS = ", ".join(f"(d.taken).{name}" for name in _COLUMNS)


def schedule_of(row: Sequence[Any]) -> Schedule:
    values: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
    times = Times(
        values["cron"],
        values["every"],
        _utc(values["at"]),
        values["zone"],
        _utc(values["starts_at"]),
        _utc(values["ends_at"]),
        values["jitter"],
    )
    return Schedule(
        values["name"],
        values["workflow"],
        times,
        values["inputs"],
        values["program"],
        Overlap(values["overlap"]),
        CatchUp(values["catch_up"]),
        values["catch_up_within"],
        values["owner"],
        values["paused"],
        _utc(values["next_fire"]),
        _utc(values["waiting"]),
        _utc(values["look_at"]),
        values["version"],
        _utc(values["created_at"]),
        values["labels"],
    )


def pack_schedule(schedule: Schedule) -> dict[str, str | int | None]:
    """The parameters of `write_schedule`."""
    times = schedule.times
    row = {
        "name": schedule.name,
        "workflow": schedule.workflow,
        "program": schedule.program,
        "inputs": map_in(schedule.inputs, "the inputs"),
        "cron": times.cron,
        "every": _span(times.every),
        "at": _text(times.at),
        "zone": times.zone,
        "starts_at": _text(times.start),
        "ends_at": _text(times.end),
        "jitter": _span(times.jitter),
        "overlap": schedule.overlap.value,
        "catch_up": schedule.catch_up.value,
        "catch_up_within": _span(schedule.catch_up_within),
        "owner": schedule.owner,
        "paused": schedule.paused,
        "next_fire": _text(schedule.next_fire),
        "waiting": _text(schedule.waiting),
        "look_at": _text(schedule.look_at),
        "version": schedule.version,
        "labels": dict(schedule.labels),
    }
    return {"schedule": dumps(row)}


def firing_of(row: Sequence[Any]) -> Firing:
    schedule, fire_at, outcome, run, until, count, note, at = row
    return Firing(schedule, utc(fire_at), Outcome(outcome), run, _utc(until), count, note, utc(at))


def pack_firing(firing: Firing) -> dict[str, str | int | None]:
    """The parameters of `write_firing`."""
    return {
        "schedule": firing.schedule,
        "fire_at": _text(firing.fire_at),
        "outcome": firing.outcome.value,
        "run": firing.run,
        "until": _text(firing.until),
        "count": firing.count,
        "note": firing.note,
    }


def _utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else utc(moment)


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _span(span: timedelta | None) -> str | None:
    return None if span is None else interval(span)
