"""When a pipeline starts: six fields with the seconds first, or the five of everybody else.

The six come with numbers for the days of the week that its documents count from Sunday as 0 and
its scheduler as 1. Nobody can know which of them a file means, so they are asked for by name.
"""

from __future__ import annotations

import re

from afl.base.cron import CRON_FORM
from afl.pipelines.model import Text
from afl.pipelines.problems import Fix, Problem

_FIELDS = 5
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_NUMBERED = re.compile(r"[0-9]")


def five_fields(cron: Text) -> Text | Problem:
    """The expression with five fields, or why it has none. Whether each makes sense is not asked.

    Five fields are taken as they are.
    """
    parts = ["*" if part == "?" else part for part in cron.value.split()]
    if len(parts) not in (_FIELDS + 1, _FIELDS + 2):
        return Text(" ".join(parts), cron.range)
    seconds, *middle = parts[: _FIELDS + 1]
    if seconds not in ("0", "00"):
        return _problem(
            cron,
            f"a schedule cannot name a second, and this asks for `{seconds}`",
            Fix("write `0` for the seconds"),
        )
    if len(parts) == _FIELDS + 2 and parts[-1] != "*":
        return _problem(
            cron, f"a schedule cannot name a year, and this asks for `{parts[-1]}`", None
        )
    days = middle[-1].partition("/")[0]
    if _NUMBERED.search(days):
        return _problem(
            cron,
            f"which days of the week are meant by `{days}` is not certain",
            Fix(f"write their names, such as {_named(days)}"),
        )
    return Text(" ".join(middle), cron.range)


def _named(days: str) -> str:
    """The days by name as the documents count, and as the scheduler did."""
    documented = re.sub(r"[0-9]+", lambda found: _day(int(found[0][:2])), days)
    counted = re.sub(r"[0-9]+", lambda found: _day(int(found[0][:2]) - 1), days)
    return f"`{documented}` if Sunday was 0, or `{counted}` if it was 1"


def _day(number: int) -> str:
    return _DAYS[number % len(_DAYS)]


def _problem(cron: Text, message: str, fix: Fix | None) -> Problem:
    return Problem(
        "AFL5013",
        cron.range,
        message,
        "not the same here",
        notes=(CRON_FORM,),
        fixes=() if fix is None else (fix,),
    )
