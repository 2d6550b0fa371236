"""What the ids of runs tell of their times: a stretch of time is a stretch of ids, if they do."""

from __future__ import annotations

from datetime import datetime, timedelta

#: How far the time in an id may be from the time at which its run was put in place.
ID_SKEW = timedelta(hours=1)
FIRST_ID = "00000000-0000-0000-0000-000000000000"
LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"


def tells_time(id_: str, made: datetime) -> bool:
    """Whether an id begins with about the time at which its run was made."""
    return first_id(made - ID_SKEW) <= id_ <= last_id(made + ID_SKEW)


def first_id(time: datetime) -> str:
    """The first id of a millisecond."""
    return _id_at(time, FIRST_ID)


def last_id(time: datetime) -> str:
    """The last id of a millisecond."""
    return _id_at(time, LAST_ID)


def _id_at(time: datetime, rest: str) -> str:
    milliseconds = f"{max(0, int(time.timestamp() * 1000)):012x}"
    return f"{milliseconds[:8]}-{milliseconds[8:]}{rest[13:]}"
