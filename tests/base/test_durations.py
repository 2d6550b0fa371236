from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afl.base.durations import MAX_DURATION_MS, UNITS_MS, format_duration, parse_duration
from afl.base.errors import DurationError


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0s", 0),
        ("500ms", 500),
        ("30s", 30_000),
        ("10m", 600_000),
        ("2h", 7_200_000),
        ("3d", 259_200_000),
        ("1w", 604_800_000),
        ("1h30m", 5_400_000),
        ("1w2d3h4m5s6ms", 788_645_006),
        ("90m", 5_400_000),
        ("007s", 7_000),
    ],
)
def test_parse(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0ms"),
        (1, "1ms"),
        (1_500, "1s500ms"),
        (5_400_000, "1h30m"),
        (129_600_000, "1d12h"),
        (604_800_000, "1w"),
    ],
)
def test_format(ms: int, text: str) -> None:
    assert format_duration(ms) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        ("30", "'30' has no unit"),
        ("1h30", "'30' has no unit"),
        ("30 s", "has a space"),
        (" 30s", "has a space"),
        ("30s\n", "has a space"),
        ("-30s", "never negative"),
        ("+30s", "never negative"),
        ("1.5h", "'1.5h' is not whole"),
        ("1h1,5m", "'1,5m' is not whole"),
        ("30S", "small letters"),
        ("1y", "there is no unit 'y'"),
        ("5min", "there is no unit 'min'; the units are w, d, h, m, s, ms"),
        ("30m1h", "'h' must stand before 'm'"),
        ("1m1m", "the unit 'm' stands twice"),
        ("soon", "'soon' is not a number with a unit"),
        ("1hx", "there is no unit 'hx'"),
        ("٣s", "is not a number with a unit"),
    ],
)
def test_a_wrong_text_is_refused_with_the_reason_and_the_right_form(text: str, reason: str) -> None:
    with pytest.raises(DurationError, match=re.escape(reason)) as caught:
        parse_duration(text)
    assert "500ms, 30s, 10m, 2h, 3d, 1w, 1h30m" in caught.value.message


@pytest.mark.parametrize("text", [f"{MAX_DURATION_MS + 1}ms", "9" * 5_000 + "s", "15250284453w"])
def test_a_duration_that_no_column_can_hold_is_refused(text: str) -> None:
    with pytest.raises(DurationError, match="the longest duration is 15250284452w") as caught:
        parse_duration(text)
    assert len(caught.value.message) < 200


@pytest.mark.parametrize("ms", [-1, MAX_DURATION_MS + 1])
def test_a_number_that_cannot_be_a_duration_is_refused(ms: int) -> None:
    with pytest.raises(DurationError, match="cannot be a duration"):
        format_duration(ms)


@given(st.integers(min_value=0, max_value=MAX_DURATION_MS))
def test_what_is_formatted_parses_back(ms: int) -> None:
    assert parse_duration(format_duration(ms)) == ms


@given(
    st.dictionaries(st.sampled_from(list(UNITS_MS)), st.integers(min_value=0, max_value=10_000)),
)
def test_every_list_of_units_in_order_is_the_sum_of_its_parts(counts: dict[str, int]) -> None:
    text = "".join(f"{counts[unit]}{unit}" for unit in UNITS_MS if unit in counts)
    if text:
        assert parse_duration(text) == sum(n * UNITS_MS[unit] for unit, n in counts.items())


@given(st.text(alphabet="0123456789wdhms.-+ \nSé", max_size=30))
def test_any_text_is_a_duration_or_a_duration_error(text: str) -> None:
    try:
        ms = parse_duration(text)
    except DurationError:
        return
    assert 0 <= ms <= MAX_DURATION_MS
