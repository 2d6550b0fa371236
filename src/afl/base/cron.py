"""Cron expressions as people write them: what is wrong with one, in words.

    minute hour day-of-month month day-of-week

A field is `*`, a value, a range `9-17`, a step `*/15`, or several of these with commas. Months and
days of the week may be three letters; 0 and 7 are Sunday. When they come is for `cronsim` to say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["CRON_FORM", "cron_problem"]

CRON_FORM = "a cron expression is `minute hour day-of-month month day-of-week`"
"""What a message about a wrong one says besides."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONGEST_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_ITEM = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/([0-9]+))?\Z")


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    words: tuple[str, ...] = ()

    def value(self, word: str) -> int | None:
        if word.isascii() and word.isdigit():
            return int(word[:6])
        lowered = word.lower()
        return self.words.index(lowered) + self.low if lowered in self.words else None


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 7, _DAYS),
)


def cron_problem(text: str) -> str:
    """What is wrong with a cron expression, naming the field; nothing if nothing is."""
    parts = text.split()
    if len(parts) != len(_FIELDS):
        return f"it has {len(parts)} field{'' if len(parts) == 1 else 's'}, not {len(_FIELDS)}"
    least: list[int] = []
    for part, field in zip(parts, _FIELDS, strict=True):
        starts = [_start_of(item, field) for item in part.split(",")]
        wrong = next((each for each in starts if isinstance(each, str)), None)
        if wrong is not None:
            return f"in the {field.name}, {wrong}"
        least.append(min(each for each in starts if isinstance(each, int)))
    return _never(parts, least[2])


def _start_of(item: str, field: _Field) -> int | str:
    """The first value that an item stands for, or what is wrong with it."""
    if not item:
        return "a comma stands alone"
    found = _ITEM.match(item)
    if found is None:
        return f"`{item}` means nothing"
    _, start, end, every = found.groups()
    if every is not None and not 0 < int(every[:6]) <= field.high:
        return f"`/{every}` is not a step"
    values: list[int] = []
    for word in (start, end):
        if word is None:
            continue
        value = field.value(word)
        if value is None or not field.low <= value <= field.high:
            return f"`{word}` is not {field.low} to {field.high}"
        values.append(value)
    if len(values) == 2 and values[0] > values[1]:
        return f"`{item}` runs backwards"
    return values[0] if values else field.low


def _never(parts: list[str], first_day: int) -> str:
    """Whether the day comes in none of the months. A day of the week may stand in for it."""
    if first_day <= 29 or not parts[4].startswith("*"):
        return ""
    longest = max(_LONGEST_MONTHS[month - 1] for month in _months(parts[3]))
    if first_day <= longest:
        return ""
    return f"in the day of month, there is no {first_day} in any of its months"


def _months(part: str) -> set[int]:
    """The months that a field without mistakes stands for."""
    field = _FIELDS[3]
    months: set[int] = set()
    for item in part.split(","):
        found = _ITEM.match(item)
        assert found is not None
        star, start, end, every = found.groups()
        first = field.low if star else field.value(start) or field.low
        # a single value with a step goes on to the end of the year
        last = field.high if star or (every and not end) else field.value(end or start) or first
        months.update(range(first, last + 1, int(every or 1)))
    return months
