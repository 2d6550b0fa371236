"""Versions of the form 1.2.3, and ranges of them.

    *                 any
    1.2.3, =1.2.3     this one; 1.2 is any 1.2.x, and 1 any 1.x.y
    >=1.2  >1.2  <2  <=2.1      >1.2 is from 1.3.0 on, and <=2.1 has every 2.1.x
    ^1.2.3            no breaking change: below 2.0.0; ^0.2.3 is below 0.3.0, ^0.0.3 below 0.0.4
    ~1.2.3            patches only: below 1.3.0; ~1 is below 2.0.0

Several, with commas or spaces between them, must all hold: `>=1.2,<2`. There are no pre-releases,
so a range is always everything from one version to just before another.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

Version = tuple[int, int, int]

_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_TERM = re.compile(r"(\^|~|>=|<=|>|<|=)?\s*v?(\d+)(?:\.(\d+))?(?:\.(\d+))?")
_ANY = ("*", "x")


@dataclass(frozen=True, slots=True)
class Versions:
    """From `low` to just before `high`; None is without an end."""

    low: Version = (0, 0, 0)
    high: Version | None = None

    def __contains__(self, version: Version) -> bool:
        return self.low <= version and (self.high is None or version < self.high)

    def __and__(self, other: Versions) -> Versions:
        ends = [end for end in (self.high, other.high) if end is not None]
        return Versions(max(self.low, other.low), min(ends, default=None))


def parse_version(text: str) -> Version:
    """A version, which must have three numbers."""
    match = _VERSION.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is not a version; write three numbers, such as 1.2.3")
    major, minor, patch = map(int, match.groups())
    return major, minor, patch


def parse_versions(text: str) -> Versions:
    """A range, as at the top of this module."""
    found = Versions()
    rest = text.strip()
    if not rest:
        raise _not_a_range(text)
    while rest:
        if rest[0] in _ANY:
            rest = rest[1:]
        elif (match := _TERM.match(rest)) is not None:
            sign, *numbers = match.groups()
            found &= _term(sign or "=", tuple(int(each) for each in numbers if each is not None))
            rest = rest[match.end() :]
        else:
            raise _not_a_range(text)
        if rest and rest[0] not in ", ":
            raise _not_a_range(text)
        rest = rest.lstrip(", ")
    return found


def _term(sign: str, given: tuple[int, ...]) -> Versions:
    low = _filled(given)
    match sign:
        case ">=":
            return Versions(low)
        case ">":
            return Versions(_after(given, len(given)))
        case "<":
            return Versions(high=low)
        case "<=":
            return Versions(high=_after(given, len(given)))
        case "~":
            return Versions(low, _after(given, min(len(given), 2)))
        case "^":
            return Versions(low, _after(given, _breaking(given)))
        case _:
            return Versions(low, _after(given, len(given)))


def _filled(given: tuple[int, ...]) -> Version:
    major, minor, patch = (*given, 0, 0)[:3]
    return major, minor, patch


def _after(given: tuple[int, ...], places: int) -> Version:
    """The first version that differs from these in its first so many places."""
    return _filled((*given[: places - 1], given[places - 1] + 1))


def _breaking(given: tuple[int, ...]) -> int:
    """How many places a change without a break leaves as they are."""
    first_set = next((place for place, number in enumerate(given, 1) if number), None)
    return first_set or len(given)


def _not_a_range(text: str) -> ValueError:
    return ValueError(f"'{text}' is not a range of versions; write such as >=1.2,<2 or ^1.2 or *")
