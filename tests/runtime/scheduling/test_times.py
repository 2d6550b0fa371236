"""When schedules fire: cron over changes of the clocks, intervals, single times, jitter."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afl.base.cron import cron_problem
from afl.runtime.errors import BadSchedule, SchedulingMissing
from afl.runtime.schedule import Times, fire_key
from afl.runtime.scheduling.checking import check_name, check_times, moment_in, times_text
from afl.runtime.scheduling.times import between, due_at, first_from, next_after, upcoming

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"
YEAR = datetime(2025, 1, 1, tzinfo=UTC)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def shown(cron: str, zone: str, after: str, count: int) -> list[str]:
    """The next fire times, in the zone."""
    found = upcoming(Times(cron=cron, zone=zone), at(after), count)
    assert all(each.tzinfo is UTC for each in found)
    return [f"{each.astimezone(ZoneInfo(zone)):%m-%d %H:%M%z}" for each in found]


SPRING = [
    # a fixed time that is skipped is fired when the clocks have jumped
    ("30 2 * * *", BERLIN, "2026-03-28T00:00", ["03-28 02:30+0100", "03-29 03:00+0200"]),
    ("30 2 * * *", NEW_YORK, "2026-03-07T05:00", ["03-07 02:30-0500", "03-08 03:00-0400"]),
    # two of them that are skipped are one
    ("0,30 2 * * *", BERLIN, "2026-03-28T23:00", ["03-29 03:00+0200", "03-30 02:00+0200"]),
    ("0 2,3 * * *", NEW_YORK, "2026-03-08T05:00", ["03-08 03:00-0400", "03-09 02:00-0400"]),
    # every hour is every hour that there is
    ("0 * * * *", BERLIN, "2026-03-28T23:30", ["03-29 01:00+0100", "03-29 03:00+0200"]),
    ("0 * * * *", NEW_YORK, "2026-03-08T05:30", ["03-08 01:00-0500", "03-08 03:00-0400"]),
    # of an hour that is skipped, nothing is fired by `*`
    ("*/30 2 * * *", BERLIN, "2026-03-28T23:00", ["03-30 02:00+0200", "03-30 02:30+0200"]),
    ("*/30 2 * * *", NEW_YORK, "2026-03-08T05:00", ["03-09 02:00-0400", "03-09 02:30-0400"]),
]
AUTUMN = [
    # a fixed time that comes twice is fired the first time
    ("30 2 * * *", BERLIN, "2026-10-24T12:00", ["10-25 02:30+0200", "10-26 02:30+0100"]),
    ("30 1 * * *", NEW_YORK, "2026-10-31T12:00", ["11-01 01:30-0400", "11-02 01:30-0500"]),
    # also for somebody who asks between the two
    ("30 2 * * *", BERLIN, "2026-10-25T00:40", ["10-26 02:30+0100"]),
    ("30 2 * * *", BERLIN, "2026-10-25T01:10", ["10-26 02:30+0100"]),
    ("30 1 * * *", NEW_YORK, "2026-11-01T06:10", ["11-02 01:30-0500"]),
    # every hour is every hour that there is
    (
        "0 * * * *",
        BERLIN,
        "2026-10-24T23:30",
        ["10-25 02:00+0200", "10-25 02:00+0100", "10-25 03:00+0100"],
    ),
    ("0 * * * *", NEW_YORK, "2026-11-01T04:30", ["11-01 01:00-0400", "11-01 01:00-0500"]),
    (
        "*/30 2 * * *",
        BERLIN,
        "2026-10-24T23:30",
        ["10-25 02:00+0200", "10-25 02:30+0200", "10-25 02:00+0100", "10-25 02:30+0100"],
    ),
]


@pytest.mark.parametrize(("cron", "zone", "after", "expected"), [*SPRING, *AUTUMN])
def test_cron_when_the_clocks_change(cron: str, zone: str, after: str, expected: list[str]) -> None:
    assert shown(cron, zone, after, len(expected)) == expected


@given(
    st.sampled_from(["30 2 * * *", "0 * * * *", "*/7 1-3 * * *", "15,45 1 * * sun", "0 0 1 * *"]),
    st.sampled_from([BERLIN, NEW_YORK, "UTC", "Australia/Lord_Howe", "America/Santiago"]),
    st.integers(0, 3 * 366 * 24 * 60).map(lambda minutes: YEAR + timedelta(minutes=minutes)),
)
@settings(max_examples=60, deadline=None)
def test_fire_times_only_go_forward(cron: str, zone: str, after: datetime) -> None:
    times = Times(cron=cron, zone=zone)
    found = [after, *upcoming(times, after, 30)]
    assert all(a < b for a, b in pairwise(found))
    for moment in found[1:]:
        # asking from just before brings the same one, so nobody's point of view matters
        assert next_after(times, moment - timedelta(microseconds=1)) == moment


def test_an_interval_is_counted_from_the_start_of_1970_in_its_zone() -> None:
    quarters = Times(every=timedelta(minutes=15))
    assert upcoming(quarters, at("2026-01-01T10:07"), 2) == [
        at("2026-01-01T10:15"),
        at("2026-01-01T10:30"),
    ]
    assert next_after(quarters, at("2026-01-01T10:15")) == at("2026-01-01T10:30")
    days = Times(every=timedelta(days=1), zone=BERLIN)
    # time that passes: an hour later on the wall in summer
    assert next_after(days, at("2026-01-01T10:00")) == at("2026-01-01T23:00")
    assert next_after(days, at("2026-07-01T10:00")) == at("2026-07-01T23:00")


def test_an_interval_is_counted_from_its_start_if_it_has_one() -> None:
    times = Times(every=timedelta(hours=6), start=at("2026-01-01T10:07"))
    assert upcoming(times, at("2025-01-01T00:00"), 2) == [
        at("2026-01-01T10:07"),
        at("2026-01-01T16:07"),
    ]
    assert next_after(times, at("2026-01-01T10:07")) == at("2026-01-01T16:07")


def test_start_and_end_are_part_of_it() -> None:
    times = Times(cron="0 * * * *", start=at("2026-01-01T10:00"), end=at("2026-01-01T12:00"))
    expected = [at(f"2026-01-01T{hour}:00") for hour in (10, 11, 12)]
    assert upcoming(times, at("2025-01-01T00:00"), 9) == expected
    assert list(between(times, expected[0], expected[1])) == expected[:2]
    assert first_from(times, expected[2]) == expected[2]
    assert next_after(times, expected[2]) is None


def test_a_single_time_comes_once() -> None:
    times = Times(at=at("2026-01-01T10:00"))
    assert upcoming(times, at("2025-01-01T00:00"), 5) == [at("2026-01-01T10:00")]
    assert next_after(times, at("2026-01-01T10:00")) is None


def test_jitter_is_the_same_for_the_same_fire_time_and_spread_over_others() -> None:
    times = Times(every=timedelta(hours=1), jitter=timedelta(minutes=10))
    moments = upcoming(times, at("2026-01-01T00:00"), 200)
    delays = [due_at("nightly", times, each) - each for each in moments]
    assert delays == [due_at("nightly", times, each) - each for each in moments]
    assert all(timedelta(0) <= each < timedelta(minutes=10) for each in delays)
    assert len(set(delays)) == 200
    assert min(delays) < timedelta(minutes=1)
    assert max(delays) > timedelta(minutes=9)
    assert due_at("other", times, moments[0]) != due_at("nightly", times, moments[0])
    assert due_at("nightly", Times(every=timedelta(hours=1)), moments[0]) == moments[0]


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (Times(), "one of cron, an interval, and a single time"),
        (Times(cron="0 * * * *", every=timedelta(hours=1)), "one of cron"),
        (Times(cron="0 25 * * *"), "in the hour, `25` is not 0 to 23"),
        (Times(cron="0 0 30 2 *"), "in the day of month, there is no 30"),
        (Times(cron="@daily"), "it has 1 field, not 5"),
        (Times(cron="0 0 * * * *"), "it has 6 fields, not 5"),
        (Times(cron="0 0 * * *", zone="Berlin"), "Did you mean `Europe/Berlin`?"),
        (Times(cron="0 0 * * *", zone="Europe/Belrin"), "Did you mean `Europe/Berlin`?"),
        (Times(cron="0 0 * * *", zone="america/new york"), "Did you mean `America/New_York`?"),
        (Times(cron="0 0 * * *", zone="Nowhere"), "names such as `Europe/Berlin`"),
        (Times(cron="0 0 * * *", zone="../etc/passwd"), "There is no time zone"),
        (Times(cron="0 0 * * *", zone=""), "There is no time zone"),
        (Times(every=timedelta(milliseconds=999)), "at most once a second"),
        (Times(every=timedelta(hours=1), jitter=timedelta(-1)), "Jitter"),
        (Times(at=at("2026-01-01T00:00").replace(tzinfo=None)), "needs a time zone"),
        (
            Times(cron="0 0 * * *", start=at("2026-01-02T00:00"), end=at("2026-01-01T00:00")),
            "before its start",
        ),
    ],
)
def test_what_is_not_possible_is_refused_with_what_to_write(times: Times, message: str) -> None:
    with pytest.raises(BadSchedule) as caught:
        check_times(times)
    assert message in caught.value.message


def test_names() -> None:
    for name in ("nightly", "reports.Nightly", "staging/reports.Nightly", "a-b:c_1"):
        check_name(name)
    for name in ("", "two words", "-first", "x" * 201, "a@b"):
        with pytest.raises(BadSchedule, match="cannot be the name"):
            check_name(name)


def test_a_written_time_without_an_offset_is_of_the_zone() -> None:
    assert moment_in("2026-07-01T09:00", BERLIN) == at("2026-07-01T07:00")
    assert moment_in("2026-07-01T09:00Z", BERLIN) == at("2026-07-01T09:00")
    with pytest.raises(BadSchedule, match="is not a time"):
        moment_in("tomorrow", BERLIN)


def test_texts() -> None:
    assert times_text(Times(cron="0 3 * * *")) == "cron 0 3 * * *"
    assert times_text(Times(every=timedelta(minutes=90))) == "every 1h30m"
    assert times_text(Times(at=at("2026-07-01T07:00"), zone=BERLIN)) == "at 2026-07-01 09:00:00"
    assert fire_key("n", at("2026-07-01T07:00")) == "n@2026-07-01T07:00:00Z"


@pytest.mark.parametrize(
    ("cron", "problem"),
    [
        ("0 0 31 4,6 *", "there is no 31 in any of its months"),
        ("0 0 31 2-2 *", "there is no 31"),
        ("0 0 31 */2 *", ""),
        ("0 0 31 2/6 *", ""),
        ("0 0 30 2 mon", ""),
        ("0 0 29 2 *", ""),
    ],
)
def test_days_that_never_come(cron: str, problem: str) -> None:
    found = cron_problem(cron)
    assert problem in found
    assert bool(found) is bool(problem)
    if not found:
        assert next_after(Times(cron=cron), at("2026-01-01T00:00")) is not None


def test_cron_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cronsim", None)
    with pytest.raises(SchedulingMissing, match=r"afl-agentflow\[pipelines\]"):
        next_after(Times(cron="0 0 * * *"), at("2026-01-01T00:00"))
    assert next_after(Times(every=timedelta(hours=1)), at("2026-01-01T00:00"))
