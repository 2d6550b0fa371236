"""What is due at a time, and what becomes of it. No clock, no store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from afl.runtime.schedule import CatchUp, Firing, Outcome, Overlap, Schedule
from afl.runtime.scheduling.times import between, due_at, next_after

#: A fire time that is later than this was missed: nobody was there for it.
GRACE = timedelta(minutes=1)
#: How often it is looked whether the run has ended that a fire time waits for.
WAITING_LOOK = timedelta(seconds=1)
#: How many fire times are looked at in one step, and counted of those that were missed in a pause.
MOST_AT_ONCE = 1_000
MOST_COUNTED = 10_000

_STILL_RUNNING = "the run before it has not ended"
_ONE_WAITS = "another one waits already"
_LATER = "a later one is due already"


@dataclass(frozen=True, slots=True)
class Step:
    """The schedule after it, and what became of fire times. At most one of them is to be started:
    the last of all that were looked at, or the one that had waited."""

    schedule: Schedule
    start: datetime | None = None
    firings: tuple[Firing, ...] = ()


def decide(schedule: Schedule, now: datetime, *, is_running: bool) -> Step:
    """The next step of a schedule. There is more to do if it has to be looked at now."""
    if schedule.waiting is not None and not is_running:
        return Step(looked_after(replace(schedule, waiting=None), now), schedule.waiting)
    fire, waiting = schedule.next_fire, schedule.waiting
    start: datetime | None = None
    became: list[Firing] = []
    looked = 0
    while fire is not None and start is None and looked < MOST_AT_ONCE:
        if due_at(schedule.name, schedule.times, fire) > now:
            break
        looked += 1
        later = next_after(schedule.times, fire)
        is_last = later is None or due_at(schedule.name, schedule.times, later) > now
        if not _is_caught_up(schedule, fire, now, is_last=is_last):
            _note_missed(became, schedule.name, fire)
        elif _is_started(schedule, is_running=is_running, is_last=is_last):
            start = fire
        elif schedule.overlap is Overlap.QUEUE and waiting is None:
            waiting = fire
        else:
            became.append(_skipped(schedule, fire))
        fire = later
    moved = replace(schedule, next_fire=fire, waiting=waiting)
    return Step(looked_after(moved, now), start, tuple(became))


def looked_after(schedule: Schedule, now: datetime) -> Schedule:
    """The schedule with the time at which it has to be looked at."""
    looks: list[datetime] = []
    if schedule.next_fire is not None:
        looks.append(due_at(schedule.name, schedule.times, schedule.next_fire))
    if schedule.waiting is not None:
        looks.append(now + WAITING_LOOK)
    look_at = min(looks) if looks and not schedule.paused else None
    return replace(schedule, look_at=look_at)


def begun(schedule: Schedule, now: datetime) -> Schedule:
    """A schedule whose first fire time lies ahead."""
    return looked_after(replace(schedule, next_fire=next_after(schedule.times, now)), now)


def resumed(schedule: Schedule, now: datetime) -> Step:
    """A schedule that goes on after a pause: what was due meanwhile was missed on purpose."""
    missed: list[Firing] = []
    if schedule.next_fire is not None and schedule.next_fire <= now:
        for number, fire in enumerate(between(schedule.times, schedule.next_fire, now)):
            if number == MOST_COUNTED:
                missed[-1] = replace(missed[-1], until=now)
                break
            _note_missed(missed, schedule.name, fire, "it was paused")
    return Step(begun(replace(schedule, paused=False), now), firings=tuple(missed))


def _is_caught_up(schedule: Schedule, fire: datetime, now: datetime, *, is_last: bool) -> bool:
    late = now - due_at(schedule.name, schedule.times, fire)
    if late <= GRACE:
        return True
    if schedule.catch_up is CatchUp.ALL:
        return late <= schedule.catch_up_within
    return schedule.catch_up is CatchUp.LAST and is_last


def _note_missed(became: list[Firing], name: str, fire: datetime, note: str = "") -> None:
    """Several in a row are one note."""
    before = became[-1] if became and became[-1].outcome is Outcome.MISSED else None
    if before is None:
        became.append(Firing(name, fire, Outcome.MISSED, until=fire, note=note))
    else:
        became[-1] = replace(before, until=fire, count=before.count + 1)


def _is_started(schedule: Schedule, *, is_running: bool, is_last: bool) -> bool:
    if schedule.overlap is Overlap.CANCEL:
        # one that would be canceled at once is not begun
        return is_last
    return schedule.overlap is Overlap.ALLOW or not is_running


def _skipped(schedule: Schedule, fire: datetime) -> Firing:
    why = {Overlap.QUEUE: _ONE_WAITS, Overlap.CANCEL: _LATER}.get(schedule.overlap, _STILL_RUNNING)
    return Firing(schedule.name, fire, Outcome.SKIPPED, note=why)
