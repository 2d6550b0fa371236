"""`Scheduling`: what people and programs do with schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import islice

from afl.kernel.errors import Fenced
from afl.kernel.port import Transaction
from afl.runtime.errors import BadSchedule, UnknownSchedule
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.programs import Plans
from afl.runtime.schedule import Firing, Schedule
from afl.runtime.scheduling.checking import check_labels, check_name, check_times
from afl.runtime.scheduling.loop import BELL
from afl.runtime.scheduling.rules import Step, begun, resumed
from afl.runtime.scheduling.scheduler import Scheduler
from afl.runtime.scheduling.times import between, next_after, upcoming
from afl.runtime.submitting import Submitter, check_inputs, refuse_unknown_workflow

#: How many fire times one backfill takes.
MOST_BACKFILLED = 10_000
_PAGE = 100
_TRIES = 20


@dataclass(frozen=True, slots=True)
class Backfilled:
    """What a backfill did, or would do."""

    #: fire times that no run had been started for
    missing: list[datetime]
    #: fire times that one had been
    known: list[datetime]
    #: what became of the missing ones
    started: list[Firing]


@dataclass(frozen=True, slots=True)
class Synced:
    """What became of the schedules that a deployment declares."""

    created: list[str]
    updated: list[str]
    removed: list[str]


class Scheduling:
    """The schedules on one store. Threads may share one."""

    def __init__(
        self,
        persistence: PersistenceAPI,
        plans: Plans,
        submitter: Submitter,
        ring: Callable[[Iterable[str]], None],
    ) -> None:
        self._persistence = persistence
        self._plans = plans
        self._submitter = submitter
        self._ring = ring
        #: what fires them; workers run it, and a test may
        self.scheduler = Scheduler(persistence, submitter)

    # Reading

    def get(self, name: str) -> Schedule:
        """One schedule.

        Raises:
            UnknownSchedule: there is none of this name; the message names the nearest.
        """
        found = self._persistence.get_schedule(name)
        if found is None:
            near = get_close_matches(name, [each.name for each in self._all()], n=1)
            hint = f"Did you mean `{near[0]}`?" if near else "`afl schedules list` shows them."
            raise UnknownSchedule(f"There is no schedule `{name}`. {hint}")
        return found

    def list(self, *, after: str | None = None, limit: int = _PAGE) -> Sequence[Schedule]:
        """Schedules in order of their names."""
        return self._persistence.find_schedules(after=after, limit=limit)

    def next(self, name: str, count: int = 5) -> Sequence[datetime]:
        """The coming fire times, as if it were not paused. Jitter is not in them."""
        return upcoming(self.get(name).times, self._persistence.now(), count)

    def history(self, name: str, limit: int = _PAGE) -> Sequence[Firing]:
        """What became of its fire times, the last first."""
        return self._persistence.get_firings(self.get(name).name, limit=limit)

    def last_run(self, name: str) -> str | None:
        """The run that was started last."""
        found = self._persistence.get_firings(name, started=True, limit=1)
        return found[0].run if found else None

    def _all(self, owner: str | None = None) -> Iterable[Schedule]:
        after: str | None = None
        while page := self._persistence.find_schedules(owner=owner, after=after, limit=_PAGE):
            yield from page
            after = page[-1].name

    # Changing

    def create(self, schedule: Schedule, *, replace_it: bool = False) -> Schedule:
        """Puts a schedule in place; its first fire time lies ahead.

        Args:
            replace_it: takes the place of the one with this name, which keeps its history.

        Raises:
            BadSchedule: it is not possible, or the name is taken. UnknownProgram, UnknownFacet,
            BadInputs: the workflow could not be started.
        """
        check_name(schedule.name)
        check_labels(schedule.labels)
        self._check(schedule, self._submitter.program(schedule.program))
        now = self._persistence.now()
        if next_after(schedule.times, now) is None:
            raise BadSchedule(f"Schedule `{schedule.name}` would never fire: its time has passed.")
        found = self._persistence.get_schedule(schedule.name)
        if found is not None:
            _refuse_declared(found, "changed")
            if not replace_it:
                raise BadSchedule(
                    f"There is a schedule `{schedule.name}` already. Give another name, or replace "
                    "it with `--replace`."
                )
        self._write(replace(begun(schedule, now), version=0 if found is None else found.version))
        return self.get(schedule.name)

    def pause(self, name: str) -> Schedule:
        """Lets it fire no more until it is resumed."""
        return self._change(
            name, lambda schedule: Step(replace(schedule, paused=True, look_at=None))
        )

    def resume(self, name: str) -> Schedule:
        """Lets a paused one go on with the next fire time; those of the pause count as missed."""

        def change(schedule: Schedule) -> Step:
            return resumed(schedule, self._persistence.now()) if schedule.paused else Step(schedule)

        return self._change(name, change)

    def delete(self, name: str) -> None:
        """Removes a schedule. Its runs go on."""
        _refuse_declared(self.get(name), "deleted")
        self._persistence.delete_schedule(name)

    def trigger(self, name: str) -> Firing:
        """Starts a run now, whether it is paused or one is running, beside its fire times.

        Raises:
            UnknownProgram, UnknownFacet, BadInputs: no run can be made of it.
        """
        fire_at = self._persistence.now().astimezone(UTC)
        return self._start(name, fire_at, "triggered")

    def backfill(
        self, name: str, start: datetime, end: datetime, *, dry_run: bool = False
    ) -> Backfilled:
        """Starts a run for each fire time from `start` to `end` that none was started for.

        They are started at once, whatever the overlap; doing it again starts nothing twice.
        """
        schedule = self.get(name)
        if end < start:
            raise BadSchedule("The backfill ends before it starts: give --from before --to.")
        end = min(end, self._persistence.now())
        times = list(islice(between(schedule.times, start, end), MOST_BACKFILLED + 1))
        if len(times) > MOST_BACKFILLED:
            raise BadSchedule(
                f"There are more than {MOST_BACKFILLED} fire times from then to then: backfill a "
                "shorter stretch at a time."
            )
        known = self._persistence.started_between(name, start, end)
        missing = [each for each in times if each not in known]
        wanted = () if dry_run else missing
        started = [self._start(name, each, "backfilled") for each in wanted]
        return Backfilled(missing, [each for each in times if each in known], started)

    def _start(self, name: str, fire_at: datetime, note: str) -> Firing:
        for _ in range(_TRIES):
            schedule = self.get(name)
            self._check_startable(schedule)
            with suppress(Fenced):
                return self.scheduler.start(schedule, fire_at, note=note)
        raise BadSchedule(f"Schedule `{name}` is changed all the time. Try again.")

    # What programs declare

    def check_declared(self, owner: str, schedules: Iterable[Schedule], program: str) -> None:
        """Raises if a program with this hash cannot be deployed with its schedules."""
        for schedule in schedules:
            self._check(schedule, program)
            found = self._persistence.get_schedule(schedule.name)
            if found is not None and found.owner != owner:
                raise BadSchedule(
                    f"The program declares a schedule `{schedule.name}`, and there is one that it "
                    f"did not make. Delete that with `afl schedules delete {schedule.name}`, or "
                    "rename the declared one."
                )

    def declare(self, owner: str, schedules: Iterable[Schedule]) -> Synced:
        """Makes the schedules of a deployment those that its program declares.

        One that is declared no more is deleted. One that stays keeps its history, its pause, and,
        if its times have not changed, its next fire time.
        """
        synced = Synced([], [], [])
        wanted = {schedule.name: replace(schedule, owner=owner) for schedule in schedules}
        for found in list(self._all(owner)):
            if found.name not in wanted:
                self._persistence.delete_schedule(found.name)
                synced.removed.append(found.name)
        for name, schedule in wanted.items():
            self._declare(schedule, name, synced)
        return synced

    def _declare(self, schedule: Schedule, name: str, synced: Synced) -> None:
        for _ in range(_TRIES):
            found = self._persistence.get_schedule(name)
            with suppress(Fenced):
                if found is None:
                    self._write(begun(schedule, self._persistence.now()))
                    synced.created.append(name)
                elif (changed := self._redeclared(found, schedule)) is not None:
                    self._write(changed)
                    synced.updated.append(name)
                return
        raise BadSchedule(f"Schedule `{name}` is changed all the time. Deploy again.")

    def _redeclared(self, found: Schedule, schedule: Schedule) -> Schedule | None:
        """The schedule as it is declared now, where it stood; None if that is what it is."""
        stands = replace(
            schedule,
            paused=found.paused,
            next_fire=found.next_fire,
            waiting=found.waiting,
            look_at=found.look_at,
            version=found.version,
            created_at=found.created_at,
        )
        if stands == found:
            return None
        if found.times == schedule.times:
            return stands
        return begun(stands, self._persistence.now())

    # Checking and writing

    def _check(self, schedule: Schedule, program: str) -> None:
        check_times(schedule.times)
        plan = self._plans.get(program)
        refuse_unknown_workflow(plan, schedule.workflow)
        check_inputs(plan, schedule.workflow, schedule.inputs)
        # whether what cron needs is installed
        next_after(schedule.times, self._persistence.now())

    def _check_startable(self, schedule: Schedule) -> None:
        plan = self._plans.get(self._submitter.program(schedule.program))
        refuse_unknown_workflow(plan, schedule.workflow)
        check_inputs(plan, schedule.workflow, schedule.inputs)

    def _change(self, name: str, change: Callable[[Schedule], Step]) -> Schedule:
        for _ in range(_TRIES):
            step = change(self.get(name))
            with suppress(Fenced):
                self._write(step.schedule, step.firings)
                return self.get(name)
        raise BadSchedule(f"Schedule `{name}` is changed all the time. Try again.")

    def _write(self, schedule: Schedule, firings: tuple[Firing, ...] = ()) -> None:
        def write(transaction: Transaction) -> None:
            self._persistence.write_schedule(transaction, schedule)
            self._persistence.write_firings(transaction, firings)

        self._persistence.kernel.commit((), writes=write)
        self._ring((BELL,))


def _refuse_declared(schedule: Schedule, verb: str) -> None:
    if schedule.owner is not None:
        raise BadSchedule(
            f"Schedule `{schedule.name}` is declared by the program that is deployed as "
            f"`{schedule.owner}`, so it is {verb} there: edit the source and deploy again. "
            f"`afl schedules pause {schedule.name}` stops it meanwhile."
        )
