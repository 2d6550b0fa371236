"""Schedules to documents and back. Writers and readers are halves of one thing."""

from __future__ import annotations

from datetime import timedelta

from afl.kernel.mongo.transaction import Document
from afl.kernel.mongo.values import Values, to_micros, to_time
from afl.runtime.mongo.core import packed, unpacked_map
from afl.runtime.run_values import map_in
from afl.runtime.schedule import CatchUp, Firing, Outcome, Overlap, Schedule, Times

_MICROSECOND = timedelta(microseconds=1)


def schedule_document(values: Values, schedule: Schedule) -> Document:
    """A schedule, but for its name, its version and when it was made."""
    times = schedule.times
    return {
        "workflow": schedule.workflow,
        "program": schedule.program,
        "inputs": packed(values, map_in(schedule.inputs, "the inputs")),
        "cron": times.cron,
        "every": _span(times.every),
        "at": to_micros(times.at),
        "zone": times.zone,
        "starts_at": to_micros(times.start),
        "ends_at": to_micros(times.end),
        "jitter": _span(times.jitter),
        "overlap": schedule.overlap.value,
        "catch_up": schedule.catch_up.value,
        "catch_up_within": _span(schedule.catch_up_within),
        "owner": schedule.owner,
        "paused": schedule.paused,
        "next_fire": to_micros(schedule.next_fire),
        "waiting": to_micros(schedule.waiting),
        "look_at": to_micros(schedule.look_at),
        "labels": packed(values, dict(schedule.labels)) if schedule.labels else None,
    }


def schedule_of(values: Values, found: Document) -> Schedule:
    every, labels = found.get("every"), unpacked_map(values, found.get("labels"))
    times = Times(
        found.get("cron"),
        None if every is None else every * _MICROSECOND,
        to_time(found.get("at")),
        found["zone"],
        to_time(found.get("starts_at")),
        to_time(found.get("ends_at")),
        found["jitter"] * _MICROSECOND,
    )
    return Schedule(
        found["_id"],
        found["workflow"],
        times,
        unpacked_map(values, found["inputs"]),
        found["program"],
        Overlap(found["overlap"]),
        CatchUp(found["catch_up"]),
        found["catch_up_within"] * _MICROSECOND,
        found.get("owner"),
        found["paused"],
        to_time(found.get("next_fire")),
        to_time(found.get("waiting")),
        to_time(found.get("look_at")),
        found["version"],
        to_time(found["created_at"]),
        {name: str(value) for name, value in labels.items()},
    )


def firing_document(firing: Firing, number: int, now: int) -> Document:
    return {
        "number": number,
        "schedule": firing.schedule,
        "fire_at": to_micros(firing.fire_at),
        "outcome": firing.outcome.value,
        "run": firing.run,
        "has_run": None if firing.run is None else True,
        "until": to_micros(firing.until),
        "count": firing.count,
        "note": firing.note,
        "noted_at": now,
    }


def firing_of(found: Document) -> Firing:
    return Firing(
        found["schedule"],
        to_time(found["fire_at"]),
        Outcome(found["outcome"]),
        found.get("run"),
        to_time(found.get("until")),
        found["count"],
        found["note"],
        to_time(found["noted_at"]),
    )


def _span(span: timedelta | None) -> int | None:
    return None if span is None else span // _MICROSECOND
