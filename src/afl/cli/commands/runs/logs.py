"""`afl runs logs`."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain, islice

import click

from afl.app.log_reading import stored_logs
from afl.app.run_talk import SYS_LOG
from afl.base.settings import LOG_LEVELS
from afl.cli.framework import Command
from afl.cli.running.connection import opened, store_url
from afl.cli.running.options import database_option, json_option, moment
from afl.cli.running.texts import plain
from afl.cli.terminal import Terminal
from afl.kernel.model import Json
from afl.logs.model import Gap, Line, microseconds
from afl.logs.model import moment as moment_of
from afl.logs.reading import Reader, Shown, Wanted, follow
from afl.runtime.operations import Operations
from afl.runtime.persistence import LogLine
from afl.runtime.states import RunState
from afl.runtime.step import WorkflowId

_NUMBERS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_MOST_IN_JSON = 10_000
_MOST_OF_SYS_LOG = 100_000
#: What a run has said is known so long after its end, if its workers are.
_SETTLED = timedelta(seconds=2)
_STEERING = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")

Entry = LogLine | Shown


def _pattern(text: str) -> re.Pattern[str]:
    """The type of a regular expression."""
    try:
        return re.compile(text)
    except re.error as error:
        raise click.BadParameter(f"'{text}' is no regular expression: {error}") from error


@click.command("logs", cls=Command)
@click.argument("run", metavar="RUN")
@click.option("-f", "--follow", "follows", is_flag=True, help="Go on until the run has ended.")
@click.option("--step", metavar="PATH", help="Only of this step and those below it.")
@click.option(
    "--stream", metavar="NAME", help="Only this stream, such as stdout, stderr, log or sys.log."
)
@click.option(
    "--level",
    type=click.Choice(LOG_LEVELS, case_sensitive=False),
    help="Only what has this level or a higher one. The output of commands has none.",
)
@click.option(
    "--since", type=moment, metavar="TIME", help="Only from this time on, or this long ago: 10m."
)
@click.option(
    "--grep", "pattern", type=_pattern, metavar="REGEX", help="Only lines in which this is found."
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many lines at most.  [default: all; 10000 with --json]",
)
@database_option
@json_option
@click.pass_obj
def logs(
    terminal: Terminal,
    run: str,
    follows: bool,
    step: str | None,
    stream: str | None,
    level: str | None,
    since: timedelta | datetime | None,
    pattern: re.Pattern[str] | None,
    limit: int | None,
    database: str | None,
    as_json: bool,
) -> None:
    """Print what a run has said: the lines of `sys.log`, of handlers and of commands.

    The lines of `sys.log` come first, the others by their times. Where lines are missing, a line
    says so and why. With -f and --json, each line is a JSON object.
    """
    with opened(database) as operations, stored_logs(store_url(database)) as store:
        found = operations.get(run)
        wanted = Wanted(
            path=step,
            name=stream,
            level=_NUMBERS.get((level or "").lower(), 0),
            since_us=_since_us(since, operations.persistence.now()),
            pattern=pattern,
        )
        reader = Reader(store, found.id, wanted)
        talk = _Talk(operations, found.id, wanted)
        if follows:
            entries: Iterator[Entry] = _followed(operations, reader, talk)
        else:
            entries = chain(talk.news(), reader.news())
        if as_json and not follows:
            _print_json(terminal, found.id, entries, limit or _MOST_IN_JSON)
        else:
            _print(terminal, islice(entries, limit), as_json=as_json)


def _since_us(since: timedelta | datetime | None, now: datetime) -> int:
    if since is None:
        return 0
    return microseconds(now - since if isinstance(since, timedelta) else since)


@dataclass(slots=True)
class _Talk:
    """The lines of `sys.log`, which have neither a level nor, to a reader, a time."""

    operations: Operations
    run: WorkflowId
    wanted: Wanted
    _read: int = field(default=0)

    def news(self) -> Iterator[LogLine]:
        """Those that were not read before."""
        wanted = self.wanted
        if wanted.level or wanted.since_us or wanted.name not in (None, SYS_LOG):
            return
        lines = self.operations.persistence.get_logs(self.run, limit=_MOST_OF_SYS_LOG)
        for line in lines[self._read :]:
            self._read += 1
            below = wanted.path is None or f"{line.path}/".startswith(f"{wanted.path}/")
            if below and (wanted.pattern is None or wanted.pattern.search(_values(line))):
                yield line


def _followed(operations: Operations, reader: Reader, talk: _Talk) -> Iterator[Entry]:
    def is_over() -> bool:
        run = operations.get(reader.run)
        ended = run.finished_at
        return RunState.is_terminal(run.state) and (
            ended is None or operations.persistence.now() - ended >= _SETTLED
        )

    def with_talk() -> Iterator[Entry]:
        yield from talk.news()
        yield from reader.news()

    yield from follow(with_talk, lambda: reader.is_complete, is_over, time.sleep)


def _print(terminal: Terminal, entries: Iterator[Entry], *, as_json: bool) -> None:
    count = 0
    for entry in entries:
        count += 1
        if as_json:
            line = {"version": 1, **_json(entry)}
            terminal.data_now(json.dumps(line, ensure_ascii=False) + "\n")
        else:
            terminal.data_now(_text(terminal, entry) + "\n")
    if not count and not as_json:
        terminal.say("the run has logged nothing")


def _print_json(terminal: Terminal, run: str, entries: Iterator[Entry], limit: int) -> None:
    listed = list(islice(entries, limit + 1))
    shown = listed[:limit]
    terminal.json(
        {
            "version": 1,
            "run": run,
            "lines": [_json(each) for each in shown if isinstance(each, LogLine)],
            "output": [_json(each) for each in shown if isinstance(each, Shown)],
            "is_cut": len(listed) > limit,
        }
    )


def _text(terminal: Terminal, entry: Entry) -> str:
    if isinstance(entry, LogLine):
        return f"{terminal.dim(entry.path)}  {_values(entry)}"
    key, item = entry.key, entry.item
    attempt = f" #{key.attempt}" if key.attempt > 1 else ""
    at = f"{moment_of(item.time_us):%H:%M:%S.%f}"[:-3]
    about = terminal.dim(f"{at}  {key.path}{attempt}  {key.name}")
    if isinstance(item, Line):
        text = plain(_STEERING.sub("", item.data.decode(errors="replace"))).rstrip("\r")
        return f"{about}  {text}{'…' if item.partial else ''}"
    return f"{about}  ~ {_missing(item)}: {item.reason}"


def _missing(gap: Gap) -> str:
    if gap.last is None:
        return "the end is missing"
    if gap.first == gap.last:
        return f"line {gap.first} is missing"
    return f"lines {gap.first} to {gap.last} are missing"


def _json(entry: Entry) -> dict[str, Json]:
    if isinstance(entry, LogLine):
        return {"step": entry.path, "values": dict(entry.values)}
    key, item = entry.key, entry.item
    about: dict[str, Json] = {
        "step": key.path,
        "attempt": key.attempt,
        "stream": key.name,
        "time": moment_of(item.time_us).isoformat(),
    }
    if isinstance(item, Gap):
        return {**about, "gap": {"first": item.first, "last": item.last, "reason": item.reason}}
    return {
        **about,
        "seq": item.seq,
        "level": item.level or None,
        "text": item.data.decode(errors="replace"),
        "is_partial": item.partial,
    }


def _values(line: LogLine) -> str:
    return " ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in line.values.items()
    )
