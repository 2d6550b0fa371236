"""A schedule, when it fires, and what became of its fire times. All times are aware."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum

from afl.kernel.model import Json

#: The labels of a run that a schedule has started.
SCHEDULE_LABEL, FIRE_LABEL = "afl.schedule", "afl.fire_time"
#: How far back missed fire times are caught up, unless it is said otherwise.
CATCH_UP_WITHIN = timedelta(days=1)


class Overlap(Enum):
    """What a fire time does while a run of the schedule goes on."""

    SKIP = "skip"  # nothing is started for it
    ALLOW = "allow"  # another run is started beside it
    QUEUE = "queue"  # one is started afterwards; further ones are skipped
    CANCEL = "cancel"  # the run is canceled, and another started


class CatchUp(Enum):
    """What becomes of fire times that nobody was there for."""

    NONE = "none"  # they are noted as missed
    LAST = "last"  # the last of them is started
    ALL = "all"  # all that lie no further back than `catch_up_within` are started


class Outcome(Enum):
    """What became of a fire time."""

    STARTED = "started"
    SKIPPED = "skipped"  # a run was still going on
    MISSED = "missed"  # nobody was there, or the schedule was paused
    FAILED = "failed"  # no run could be made of it


@dataclass(frozen=True, slots=True)
class Times:
    """When a schedule fires. Exactly one of `cron`, `every` and `at` is set."""

    cron: str | None = None
    every: timedelta | None = None
    at: datetime | None = None
    #: in which cron is read, and of which times without an offset are
    zone: str = "UTC"
    #: nothing before this; intervals are counted from it, else from the start of 1970 in the zone
    start: datetime | None = None
    #: nothing after this
    end: datetime | None = None
    #: each is started up to this much later, always the same for one fire time
    jitter: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule, and where it stands."""

    name: str
    workflow: str
    times: Times
    inputs: Mapping[str, Json] = field(default_factory=dict)
    #: the deployment whose current program is run
    program: str = "default"
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.LAST
    catch_up_within: timedelta = CATCH_UP_WITHIN
    #: the deployment whose program declares it; None if people made it
    owner: str | None = None
    paused: bool = False
    #: the first fire time that nothing became of yet; None if there is none any more
    next_fire: datetime | None = None
    #: a fire time that is started when the run before it has ended
    waiting: datetime | None = None
    #: when a scheduler has to look at it; None if never
    look_at: datetime | None = None
    #: counts its changes
    version: int = 0
    created_at: datetime | None = None
    #: of the runs that it starts, beside those that say where they come from
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """active, paused, or ended: it never fires again."""
        if self.paused:
            return "paused"
        return "active" if self.next_fire or self.waiting else "ended"


@dataclass(frozen=True, slots=True)
class Firing:
    """What became of a fire time, or of several that were missed in a row."""

    schedule: str
    fire_at: datetime
    outcome: Outcome
    run: str | None = None
    #: the last of those that were missed
    until: datetime | None = None
    #: how many they are; at least so many if they are very many
    count: int = 1
    #: why, or on whose behalf
    note: str = ""
    #: when it was written down
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Due:
    """Schedules that a scheduler has taken for a while, and when to look for more."""

    now: datetime
    schedules: list[Schedule]
    next_look: datetime | None


def fire_text(moment: datetime) -> str:
    """A fire time as keys and labels write it: in UTC, `2026-03-29T01:00:00Z`."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"


def fire_key(schedule: str, moment: datetime) -> str:
    """The key of the run of a fire time: one run has it."""
    return f"{schedule}@{fire_text(moment)}"
