"""What a schedule may not be: each refusal says what to write instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from zoneinfo import ZoneInfo, available_timezones

from afl.base.cron import CRON_FORM, cron_problem
from afl.base.durations import format_duration
from afl.runtime.errors import BadSchedule
from afl.runtime.schedule import Times

SHORTEST = timedelta(seconds=1)
#: The beginning of the names of labels that say where a run comes from.
_OWN = "afl."
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:-]{0,199}\Z")


def check_name(name: str) -> None:
    """Raises for a name that cannot be one."""
    if not _NAME.match(name):
        raise BadSchedule(
            f"`{name}` cannot be the name of a schedule: use up to 200 letters, digits and "
            "any of `_ . - / :`, such as `nightly-report`."
        )


def check_labels(labels: Mapping[str, str]) -> None:
    """Raises for labels that runs of a schedule cannot bear."""
    for name in labels:
        if not name or name.startswith(_OWN):
            raise BadSchedule(
                f"`{name}` cannot be a label of a schedule: names that begin with `{_OWN}` are "
                "those that its runs have anyway. Use another name, such as `team`."
            )


def check_times(times: Times) -> None:
    """Raises for times that are not possible."""
    given = sum(each is not None for each in (times.cron, times.every, times.at))
    if given != 1:
        raise BadSchedule("A schedule has one of cron, an interval, and a single time.")
    check_zone(times.zone)
    if times.cron is not None and (problem := cron_problem(times.cron)):
        raise BadSchedule(f"`{times.cron}` is not a cron expression: {problem}; {CRON_FORM}.")
    if times.every is not None and times.every < SHORTEST:
        raise BadSchedule("A schedule fires at most once a second: use an interval of 1s or more.")
    if times.jitter < timedelta(0):
        raise BadSchedule("Jitter delays, so it cannot be less than nothing.")
    for name, moment in (("start", times.start), ("end", times.end), ("time", times.at)):
        if moment is not None and moment.tzinfo is None:
            raise BadSchedule(f"The {name} of a schedule needs a time zone.")
    if times.start is not None and times.end is not None and times.end < times.start:
        raise BadSchedule("The end of the schedule lies before its start.")


def check_zone(name: str) -> None:
    """Raises for a name that is no time zone, with those that come close."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise BadSchedule(f"There is no time zone `{name}`. {_zone_hint(name)}") from None


def moment_in(text: str, zone: str) -> datetime:
    """A time in ISO 8601; one without an offset is of the zone."""
    check_zone(zone)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise BadSchedule(
            f"`{text}` is not a time: write it as in 2027-01-31T09:00, or 2027-01-31T09:00:00Z."
        ) from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=ZoneInfo(zone))
    return found.astimezone(UTC)


def times_text(times: Times) -> str:
    """When a schedule fires, in a few words."""
    if times.cron is not None:
        return f"cron {times.cron}"
    if times.every is not None:
        return f"every {format_duration(round(times.every / timedelta(milliseconds=1)))}"
    assert times.at is not None
    return f"at {times.at.astimezone(ZoneInfo(times.zone)):%Y-%m-%d %H:%M:%S}"


def _zone_hint(name: str) -> str:
    known = available_timezones()
    if not known:
        return "This machine knows no zones: `pip install tzdata` brings them."
    wanted = name.replace(" ", "_").lower()
    places = {zone.rpartition("/")[2].lower(): zone for zone in sorted(known, reverse=True)}
    whole = {zone.lower(): zone for zone in known if "/" in zone}
    if wanted in places:
        return f"Did you mean `{places[wanted]}`?"
    near = get_close_matches(wanted, whole, n=1, cutoff=0.7)
    if near:
        return f"Did you mean `{whole[near[0]]}`?"
    by_place = get_close_matches(wanted.rpartition("/")[2], places, n=1, cutoff=0.7)
    if by_place:
        return f"Did you mean `{places[by_place[0]]}`?"
    return "Zones have names such as `Europe/Berlin`, or `UTC`."
