"""The schedules that a program declares, as rows of the deployment that it is."""

from __future__ import annotations

from datetime import datetime, timedelta

from afl.ir import model as ir
from afl.runtime.expressions import constant
from afl.runtime.schedule import CatchUp, Overlap, Schedule, Times
from afl.runtime.scheduling.checking import moment_in

#: The deployment whose schedules have the names that they are declared with.
_DEFAULT = "default"


def declared_schedules(program: ir.Program, deployment: str) -> list[Schedule]:
    """What a program declares, for the deployment of this name.

    Raises:
        BadSchedule: a time or a zone is none.
    """
    return [_schedule(each, deployment) for each in program.schedules]


def declared_name(name: str, deployment: str) -> str:
    """What a declared schedule is called: two deployments may declare the same."""
    return name if deployment == _DEFAULT else f"{deployment}/{name}"


def _schedule(declared: ir.Schedule, deployment: str) -> Schedule:
    times = Times(
        declared.cron,
        None if declared.every_ms is None else _span(declared.every_ms),
        _moment(declared.at, declared.zone),
        declared.zone,
        _moment(declared.start, declared.zone),
        _moment(declared.end, declared.zone),
        _span(declared.jitter_ms or 0),
    )
    return Schedule(
        declared_name(declared.name, deployment),
        declared.workflow,
        times,
        {argument.name: constant(argument.value) for argument in declared.args},
        deployment,
        Overlap(declared.overlap),
        CatchUp(declared.catch_up),
        owner=deployment,
    )


def _span(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)


def _moment(text: str | None, zone: str) -> datetime | None:
    return None if text is None else moment_in(text, zone)
