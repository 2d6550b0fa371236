"""Rows as columns, for people and for `awk` alike."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from afl.base.durations import UNITS_MS


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns, two spaces apart, under their names. Nothing if there are no rows."""
    if not rows:
        return ""
    lines = [[name.upper() for name in header], *([_flat(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        + "\n"
        for line in lines
    )


def _flat(cell: str) -> str:
    """A cell on one line; an empty one is a dash, so that columns can be counted."""
    return " ".join(cell.split()) or "-"


def age(since: datetime | None, now: datetime) -> str:
    """How long ago something was, in its largest unit: `3h`, `12d`."""
    return "" if since is None else short(now - since)


def short(span: timedelta) -> str:
    """A duration in its largest unit that fits at least once; `0s` for what is shorter."""
    ms = max(0, round(span.total_seconds() * 1000))
    for unit in ("d", "h", "m", "s"):
        if ms >= UNITS_MS[unit]:
            return f"{ms // UNITS_MS[unit]}{unit}"
    return "0s"


def local(moment: datetime | None) -> str:
    """A time as people read it, in UTC."""
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S}Z"
