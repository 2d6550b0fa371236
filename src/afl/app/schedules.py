"""`Schedules`: what starts runs at its times, for the SDK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from afl.app.run import Run, span_of
from afl.kernel.model import Json
from afl.runtime.errors import BadSchedule
from afl.runtime.operations import Operations
from afl.runtime.schedule import (
    CATCH_UP_WITHIN,
    CatchUp,
    Firing,
    Overlap,
    Schedule,
    Times,
)
from afl.runtime.scheduling.checking import moment_in
from afl.runtime.scheduling.service import Backfilled

#: A time, or its text: without an offset it is of the schedule's zone.
Moment = str | datetime
Span = str | timedelta


class Schedules:
    """The schedules on one store. Threads may share one."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._schedules = operations.schedules

    def create(
        self,
        name: str,
        workflow: str,
        inputs: Mapping[str, Json] | None = None,
        *,
        cron: str | None = None,
        every: Span | None = None,
        at: Moment | None = None,
        zone: str = "UTC",
        start: Moment | None = None,
        end: Moment | None = None,
        jitter: Span | None = None,
        overlap: str = "skip",
        catch_up: str = "last",
        catch_up_within: Span | None = None,
        program: str = "default",
        replace: bool = False,
        labels: Mapping[str, str] | None = None,
    ) -> Schedule:
        """Starts a workflow again and again; give one of `cron`, `every` and `at`.

        Args:
            cron: minute, hour, day of month, month and day of week, in the zone.
            every: an interval, such as `15m`.
            at: the one time at which it fires.
            jitter: how much later a run may be started, such as `5m`.
            overlap: what to do while a run goes on: `skip`, `allow`, `queue` or `cancel`.
            catch_up: what to do about fire times that nobody was there for: `none`, `last`, `all`.
            catch_up_within: how far back `all` goes; a day if it is not said.
            program: the deployment whose program is run.
            replace: takes the place of the schedule with this name.
            labels: of the runs that it starts.

        Raises:
            BadSchedule: it is not possible, or the name is taken; the message says what to do.
            UnknownProgram, UnknownFacet, BadInputs: the workflow could not be started.
        """
        times = Times(
            cron,
            span_of(every),
            _moment(at, zone),
            zone,
            _moment(start, zone),
            _moment(end, zone),
            span_of(jitter) or timedelta(0),
        )
        schedule = Schedule(
            name,
            workflow,
            times,
            inputs or {},
            program,
            overlap_of(overlap),
            catch_up_of(catch_up),
            span_of(catch_up_within) or CATCH_UP_WITHIN,
            labels=labels or {},
        )
        return self._schedules.create(schedule, replace_it=replace)

    def get(self, name: str) -> Schedule:
        """One schedule."""
        return self._schedules.get(name)

    def list(self, *, after: str | None = None, limit: int = 100) -> Sequence[Schedule]:
        """Schedules in order of their names, from after the given one."""
        return self._schedules.list(after=after, limit=limit)

    def next(self, name: str, count: int = 5) -> Sequence[datetime]:
        """The coming fire times."""
        return self._schedules.next(name, count)

    def history(self, name: str, limit: int = 100) -> Sequence[Firing]:
        """What became of its fire times, the last first."""
        return self._schedules.history(name, limit)

    def pause(self, name: str) -> Schedule:
        """Lets it fire no more until it is resumed."""
        return self._schedules.pause(name)

    def resume(self, name: str) -> Schedule:
        """Lets it go on with its next fire time; those of the pause count as missed."""
        return self._schedules.resume(name)

    def trigger(self, name: str) -> Run:
        """Starts a run now, beside its fire times."""
        firing = self._schedules.trigger(name)
        assert firing.run is not None
        return Run(self._operations, firing.run)

    def backfill(
        self, name: str, start: Moment, end: Moment, *, dry_run: bool = False
    ) -> Backfilled:
        """Starts a run for each fire time from `start` to `end` that none was started for."""
        zone = self.get(name).times.zone
        since, until = _moment(start, zone), _moment(end, zone)
        assert since is not None
        assert until is not None
        return self._schedules.backfill(name, since, until, dry_run=dry_run)

    def delete(self, name: str) -> None:
        """Removes a schedule. Its runs go on."""
        self._schedules.delete(name)


def overlap_of(word: str) -> Overlap:
    """The policy of this name."""
    try:
        return Overlap(word)
    except ValueError:
        names = ", ".join(f"`{each.value}`" for each in Overlap)
        raise BadSchedule(f"`{word}` is no policy for overlap; use one of {names}.") from None


def catch_up_of(word: str) -> CatchUp:
    """The policy of this name."""
    try:
        return CatchUp(word)
    except ValueError:
        names = ", ".join(f"`{each.value}`" for each in CatchUp)
        raise BadSchedule(f"`{word}` is no policy for catching up; use one of {names}.") from None


def _moment(given: Moment | None, zone: str) -> datetime | None:
    if isinstance(given, str):
        return moment_in(given, zone)
    if given is not None and given.tzinfo is not None:
        return given.astimezone(UTC)
    return given
