"""Durations as people write them, to and from whole milliseconds.

    500ms   30s   10m   2h   3d   1w   1h30m

A duration is one or more whole numbers, each with its unit, the largest unit first. A day is 24
hours and a week 7 days. Months and years are left out: their length depends on when they start.
"""

from __future__ import annotations

import re

from afl.base.errors import DurationError

__all__ = ["MAX_DURATION_MS", "UNITS_MS", "format_duration", "parse_duration"]

UNITS_MS = {
    "w": 7 * 24 * 60 * 60 * 1000,
    "d": 24 * 60 * 60 * 1000,
    "h": 60 * 60 * 1000,
    "m": 60 * 1000,
    "s": 1000,
    "ms": 1,
}
"""Every unit and its length in milliseconds, the largest first."""

MAX_DURATION_MS = 2**63 - 1
"""The longest duration: what a signed 64-bit number of milliseconds holds."""

_FORM = (
    "Write whole numbers with units, the largest unit first: 500ms, 30s, 10m, 2h, 3d, 1w, 1h30m."
)
_PART = re.compile(r"([0-9]+)([a-z]+)")
_DECIMAL = re.compile(r"[0-9]+[.,][0-9]+")
_ORDER = list(UNITS_MS)
_MAX_DIGITS = len(str(MAX_DURATION_MS))


def parse_duration(text: str) -> int:
    """The length of a written duration in milliseconds.

    Raises:
        DurationError: the text is not a duration; the message says why and shows the right form.
    """
    total, position, last = 0, 0, -1
    while match := _PART.match(text, position):
        digits, unit = match.groups()
        if unit not in UNITS_MS:
            raise _wrong(text, f"there is no unit '{unit}'; the units are {_units()}")
        rank = _ORDER.index(unit)
        if rank == last:
            raise _wrong(text, f"the unit '{unit}' stands twice")
        if rank < last:
            raise _wrong(text, f"'{unit}' must stand before '{_ORDER[last]}'")
        # The digits are counted first: turning thousands of them into a number is slow or refused.
        if len(digits.lstrip("0")) > _MAX_DIGITS:
            raise _too_long(text)
        total += int(digits) * UNITS_MS[unit]
        position, last = match.end(), rank
    if position < len(text) or not text:
        raise _wrong(text, _reason(text, text[position:]))
    if total > MAX_DURATION_MS:
        raise _too_long(text)
    return total


def format_duration(ms: int) -> str:
    """A number of milliseconds as `parse_duration` reads it, in the shortest list of units.

    Raises:
        DurationError: the number is negative or longer than `MAX_DURATION_MS`.
    """
    if not 0 <= ms <= MAX_DURATION_MS:
        raise DurationError(f"{ms} ms cannot be a duration: it must be 0 to {MAX_DURATION_MS} ms.")
    parts = []
    rest = ms
    for unit, length in UNITS_MS.items():
        count, rest = divmod(rest, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0ms"


def _reason(text: str, rest: str) -> str:
    """Why `rest`, the part of `text` that could not be read, is not a number with a unit."""
    if not text:
        return "it is empty"
    if any(letter.isspace() for letter in text):
        return "it has a space in it"
    if text.startswith(("-", "+")):
        return "it has a sign; a duration is never negative"
    if _DECIMAL.match(rest):
        return f"'{rest}' is not whole; use a smaller unit, as in 1h30m for one and a half hours"
    if rest.isascii() and rest.isdigit():
        return f"'{rest}' has no unit; the units are {_units()}"
    if rest.lower() != rest and _PART.match(rest.lower()):
        return "units are written in small letters"
    return f"'{rest}' is not a number with a unit"


def _units() -> str:
    return ", ".join(_ORDER)


def _wrong(text: str, reason: str) -> DurationError:
    return DurationError(f"'{_shown(text)}' is not a duration: {reason}. {_FORM}")


def _too_long(text: str) -> DurationError:
    longest = format_duration(MAX_DURATION_MS)
    return DurationError(f"'{_shown(text)}' is too long: the longest duration is {longest}.")


def _shown(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
