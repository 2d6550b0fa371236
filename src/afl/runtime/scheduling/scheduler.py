"""Fires what is due. Any number of processes may: each fire time is dealt with once.

A scheduler takes schedules that are due, so that others leave them alone for a moment, and moves
each on by its version. The run of a fire time, what became of it, and the moved schedule are one
transaction. One that died in between has changed nothing; one that was overtaken is refused.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from afl.kernel.errors import Fenced, NotFound, StoreUnavailable
from afl.kernel.model import Json, TaskId, TaskSpec
from afl.kernel.port import Transaction
from afl.runtime.entities import Run
from afl.runtime.errors import BadInputs, UnknownFacet, UnknownProgram
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.schedule import (
    FIRE_LABEL,
    SCHEDULE_LABEL,
    Firing,
    Outcome,
    Overlap,
    Schedule,
    fire_key,
    fire_text,
)
from afl.runtime.scheduling.rules import Step, decide
from afl.runtime.submitting import Order, Submitter, idem_of

_log = logging.getLogger("afl.schedules")
#: How long others leave a schedule alone that was taken, in case its taker has died, and how many
#: are taken at once.
HOLD = timedelta(seconds=5)
_AT_ONCE = 10
#: How many steps of one schedule are taken before others have their turn.
_STEPS = 500
_REPLACED: Json = {"type": "Replaced", "message": "The next run of its schedule is due."}
_NOT_STARTABLE = (BadInputs, UnknownFacet, UnknownProgram)


class Scheduler:
    """Starts runs of schedules. Threads may share one."""

    def __init__(
        self, persistence: PersistenceAPI, submitter: Submitter, *, hold: timedelta = HOLD
    ) -> None:
        """`hold` is how long others leave alone what this one has taken and not dealt with."""
        self._hold = hold
        self._persistence = persistence
        self._kernel = persistence.kernel
        self._submitter = submitter

    def tick(self) -> float | None:
        """Does what is due. Answers in how many seconds something is, 0 if there may be more now,
        None if there is nothing."""
        due = self._persistence.take_due(self._hold, _AT_ONCE)
        for schedule in due.schedules:
            try:
                self._go_on(schedule, due.now)
            except Fenced:
                continue  # somebody else has moved it
            except StoreUnavailable:
                raise
            except Exception:  # noqa: BLE001 - one that cannot be fired must not keep the others
                _log.warning(
                    "the schedule %s cannot go on; it is tried again", schedule.name, exc_info=True
                )
        if due.schedules:
            return 0.0
        return None if due.next_look is None else (due.next_look - due.now).total_seconds()

    def _go_on(self, schedule: Schedule, now: datetime) -> None:
        for _ in range(_STEPS):
            open_runs = self._open_runs(schedule)
            step = decide(schedule, now, is_running=bool(open_runs))
            if step.start is not None and schedule.overlap is Overlap.CANCEL:
                for run in open_runs:
                    with suppress(NotFound):
                        self._kernel.stop(TaskId(run), force=True, error=_REPLACED)
            schedule = self._take(step)
            if schedule.look_at is None or schedule.look_at > now:
                return
        # the rest when it is taken again, which is at once

    def _open_runs(self, schedule: Schedule) -> list[str]:
        if schedule.overlap is Overlap.ALLOW:
            return []
        return self._persistence.open_runs(schedule.name)

    def _take(self, step: Step) -> Schedule:
        """Takes a step: all of it, or nothing with `Fenced`. Answers the schedule after it."""
        if step.start is None:
            self._write(step.schedule, step.firings)
        else:
            self.start(step.schedule, step.start, firings=step.firings)
        return replace(step.schedule, version=step.schedule.version + 1)

    def start(
        self,
        schedule: Schedule,
        fire_at: datetime,
        *,
        firings: tuple[Firing, ...] = (),
        note: str = "",
    ) -> Firing:
        """Starts the run of a fire time and writes the schedule with it.

        The run that there is already for it will do. If none can be made, that is noted.
        """
        firing = Firing(schedule.name, fire_at, Outcome.STARTED, note=note)
        try:
            run, spec = self._prepare(schedule, fire_at)
        except _NOT_STARTABLE as error:
            failed = replace(firing, outcome=Outcome.FAILED, note=error.message)
            self._write(schedule, (*firings, failed))
            return failed
        started = replace(firing, run=run.id)

        def write(transaction: Transaction) -> None:
            self._persistence.write_run(transaction, run)
            self._persistence.write_schedule(transaction, schedule)
            self._persistence.write_firings(transaction, (*firings, started))

        (made,) = self._kernel.enqueue([spec], writes=write)
        if made.id == spec.id:
            self._submitter.ring((spec.list,))
            return started
        known = replace(started, run=made.id)
        self._write(schedule, (*firings, known))
        return known

    def _prepare(self, schedule: Schedule, fire_at: datetime) -> tuple[Run, TaskSpec]:
        key = fire_key(schedule.name, fire_at)
        order = Order(
            self._submitter.program(schedule.program),
            schedule.workflow,
            schedule.inputs,
            key,
            {
                **schedule.labels,
                SCHEDULE_LABEL: schedule.name,
                FIRE_LABEL: fire_text(fire_at),
            },
        )
        return self._submitter.prepare(order, idem_of(key))

    def _write(self, schedule: Schedule, firings: tuple[Firing, ...]) -> None:
        def write(transaction: Transaction) -> None:
            self._persistence.write_schedule(transaction, schedule)
            self._persistence.write_firings(transaction, firings)

        self._kernel.commit((), writes=write)
