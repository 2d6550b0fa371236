"""When a schedule fires. What is answered are times in UTC; no clock is read.

Cron goes by the clock on the wall of the zone, as Debian's cron does:

- An expression with a fixed minute and hour, such as `30 2 * * *`, fires once a day whatever the
  clocks do. A time that is skipped in spring is fired when the clocks have jumped; of a time that
  comes twice in autumn the first one counts.
- One whose minute or hour begins with `*` fires at every such time that really is: none in the hour
  that is skipped, and in both of the hour that comes twice.

An interval is time that passes: `every 24h` is an hour off for half of the year.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from afl.runtime.errors import SchedulingMissing
from afl.runtime.schedule import Times

if TYPE_CHECKING:
    from cronsim import CronSim

_INSTANT = timedelta(microseconds=1)


def next_after(times: Times, moment: datetime) -> datetime | None:
    """The first fire time after a moment; None if there is none any more."""
    if times.start is not None and moment < times.start:
        moment = times.start - _INSTANT
    found = _next(times, moment)
    if found is None or (times.end is not None and found > times.end):
        return None
    return found.astimezone(UTC)


def first_from(times: Times, moment: datetime) -> datetime | None:
    """The first fire time at a moment or after it."""
    return next_after(times, moment - _INSTANT)


def upcoming(times: Times, after: datetime, count: int) -> list[datetime]:
    """The next fire times after a moment, so many if there are."""
    return list(islice(_from(times, next_after(times, after)), count))


def between(times: Times, start: datetime, end: datetime) -> Iterator[datetime]:
    """The fire times from `start` to `end`, both included."""
    for moment in _from(times, first_from(times, start)):
        if moment > end:
            return
        yield moment


def due_at(name: str, times: Times, fire_at: datetime) -> datetime:
    """When a fire time is started: jitter delays it, always by the same."""
    if not times.jitter:
        return fire_at
    digest = hashlib.sha256(f"{name}\0{fire_at.astimezone(UTC).isoformat()}".encode()).digest()
    share = int.from_bytes(digest[:8]) / 2**64
    return fire_at + times.jitter * share


def zone_of(times: Times) -> ZoneInfo:
    """The zone of a schedule, which is known to be one."""
    return ZoneInfo(times.zone)


def _from(times: Times, first: datetime | None) -> Iterator[datetime]:
    while first is not None:
        yield first
        first = next_after(times, first)


def _next(times: Times, moment: datetime) -> datetime | None:
    if times.at is not None:
        return times.at if times.at > moment else None
    if times.every is not None:
        anchor = times.start or datetime(1970, 1, 1, tzinfo=zone_of(times)).astimezone(UTC)
        return anchor + max(0, (moment - anchor) // times.every + 1) * times.every
    assert times.cron is not None
    zone = UTC if times.zone == "UTC" else zone_of(times)
    cron = _cron(times.cron, moment.astimezone(zone))
    for found in cron:
        # within an hour that comes twice, the library's next may be the one before
        if found.astimezone(UTC) > moment.astimezone(UTC):
            return found
    return None


def _cron(text: str, moment: datetime) -> CronSim:
    # the library is an extra: it is imported when a schedule has cron
    try:
        from cronsim import CronSim  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SchedulingMissing(
            f"Cron needs {error.name}, which is not installed: "
            "`pip install 'afl-agentflow[pipelines]'`. Intervals need nothing."
        ) from error
    return CronSim(text, moment)
