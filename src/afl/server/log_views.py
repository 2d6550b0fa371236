"""Log lines in the shapes of the API."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from datetime import datetime

from afl.app.run_talk import MOST_LINES, WithTalk, text_of
from afl.logs.model import Gap, microseconds, moment
from afl.logs.reading import Wanted
from afl.logs.windows import Entry, Window, Windows
from afl.runtime.entities import Run
from afl.server.backend import Backend
from afl.server.errors import BadForm, Missing
from afl.server.models.agents import LogLineView, LogPage

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
#: A pattern is tried on every line; a longer one is not what a person types.
_LONGEST_PATTERN = 200


class BadFilter(BadForm):
    """Lines cannot be chosen like this."""

    code = "server.bad_filter"


class NoLogStore(Missing):
    """This server keeps no log lines: its database is this process's memory. Use PostgreSQL
    or MongoDB."""

    code = "server.no_log_store"


def wanted(
    *,
    step: str | None = None,
    stream: str | None = None,
    level: str | None = None,
    grep: str | None = None,
    since: datetime | None = None,
) -> Wanted:
    """Which lines are asked for.

    Raises:
        BadFilter: there is no such level, or the time has no zone.
    """
    if level is not None and level.lower() not in _LEVELS:
        raise BadFilter(f"There is no level {level}. Use one of {', '.join(_LEVELS)}.")
    if since is not None and since.tzinfo is None:
        raise BadFilter("`since` needs a time zone, such as a Z at its end.")
    if grep is not None and len(grep) > _LONGEST_PATTERN:
        raise BadFilter(f"`grep` may have {_LONGEST_PATTERN} letters at most.")
    return Wanted(
        path=step,
        name=stream,
        level=_LEVELS[level.lower()] if level is not None else 0,
        since_us=0 if since is None else max(0, microseconds(since)),
        # a plain text: a pattern of somebody else's could keep a server busy for hours
        pattern=None if grep is None else re.compile(re.escape(grep), re.IGNORECASE),
    )


def windows(backend: Backend, run: Run | None, which: Wanted) -> Windows:
    """The log of a run with its lines of `sys.log`, or the last lines of all runs."""
    if run is None:
        return Windows(WithTalk(backend.logs, "", ()), None, which)
    talk = backend.services.persistence.get_logs(run.id, limit=MOST_LINES)
    return Windows(WithTalk(backend.logs, run.id, talk), run.id, which)


def page(window: Window) -> LogPage:
    """A window as a page."""
    return LogPage(items=lines(window.entries), next=window.next or None, before=window.before)


def lines(entries: Sequence[Entry]) -> list[LogLineView]:
    """Entries as lines; a gap says how much is missing, and why."""
    return [_line(entry) for entry in entries]


def _line(entry: Entry) -> LogLineView:
    key, item = entry.shown.key, entry.shown.item
    if isinstance(item, Gap):
        text, level, seq = item.reason, None, item.first
        gap = 0 if item.last is None else item.last - item.first + 1
    else:
        text, level, seq, gap = text_of(item), _level(item.level), item.seq, None
        if item.partial:
            text += "…"
    return LogLineView(
        cursor=entry.name,
        run=key.run,
        step=key.path,
        attempt=key.attempt,
        stream=key.name,
        level=level,
        seq=seq,
        at=moment(item.time_us),
        text=text,
        gap=gap,
    )


def _level(number: int) -> str | None:
    named = [name for name, least in _LEVELS.items() if number >= least]
    return named[-1] if named else None
