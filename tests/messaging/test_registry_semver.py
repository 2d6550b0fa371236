"""Ranges of versions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afl.messaging.semver import parse_version, parse_versions

_versions = st.tuples(*(st.integers(0, 30),) * 3)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("*", ["0.0.0", "99.0.0"], []),
        ("1.2.3", ["1.2.3"], ["1.2.2", "1.2.4"]),
        ("=1.2", ["1.2.0", "1.2.99"], ["1.1.9", "1.3.0"]),
        ("1", ["1.0.0", "1.99.0"], ["0.9.0", "2.0.0"]),
        (">=1.2,<2", ["1.2.0", "1.10.0", "1.99.99"], ["1.1.9", "2.0.0"]),
        (">=1.9 <1.11", ["1.9.0", "1.10.5"], ["1.8.0", "1.11.0"]),
        (">1.2", ["1.3.0"], ["1.2.9"]),
        (">1.2.3", ["1.2.4"], ["1.2.3"]),
        ("<=2.1", ["2.1.9"], ["2.2.0"]),
        ("<=2.1.0", ["2.1.0"], ["2.1.1"]),
        ("^1.2.3", ["1.2.3", "1.10.0"], ["1.2.2", "2.0.0"]),
        ("^1.2", ["1.2.0", "1.9.9"], ["1.1.9", "2.0.0"]),
        ("^0.2.3", ["0.2.3", "0.2.9"], ["0.3.0", "0.2.2"]),
        ("^0.0.3", ["0.0.3"], ["0.0.4", "0.0.2"]),
        ("^0.0", ["0.0.9"], ["0.1.0"]),
        ("^0", ["0.9.9"], ["1.0.0"]),
        ("~1.2.3", ["1.2.3", "1.2.9"], ["1.3.0"]),
        ("~1", ["1.9.0"], ["2.0.0"]),
        (" >= 1.2 , < 2 ", ["1.5.0"], ["2.0.0"]),
        (">=2,<1", [], ["1.0.0", "2.0.0"]),
    ],
)
def test_a_range_has_what_it_says(text: str, inside: list[str], outside: list[str]) -> None:
    versions = parse_versions(text)
    assert [each for each in inside if parse_version(each) not in versions] == []
    assert [each for each in outside if parse_version(each) in versions] == []


@pytest.mark.parametrize("text", ["", "latest", "1.2.3.4", ">=", "1..2", ">=1.2<2", "1.2-beta"])
def test_what_is_not_a_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="range of versions"):
        parse_versions(text)


@given(low=_versions, high=_versions, version=_versions)
def test_versions_are_compared_as_numbers(
    low: tuple[int, int, int], high: tuple[int, int, int], version: tuple[int, int, int]
) -> None:
    text = f">={'.'.join(map(str, low))},<{'.'.join(map(str, high))}"
    assert (version in parse_versions(text)) == (low <= version < high)


def test_a_version_has_three_numbers() -> None:
    assert parse_version("1.10.0") == (1, 10, 0)
    with pytest.raises(ValueError, match="three numbers"):
        parse_version("1.10")
