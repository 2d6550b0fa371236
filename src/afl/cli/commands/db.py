"""`afl db`: the schema of the database that AgentFlow keeps its work in, and its finished work."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import ModuleType

import click

from afl.base.durations import UNITS_MS, parse_duration
from afl.base.errors import DurationError
from afl.base.settings import Settings
from afl.cli import exit_codes
from afl.cli.errors import CommandError
from afl.cli.framework import Command
from afl.cli.running.servers import refuse_server
from afl.cli.terminal import Terminal, count

_BATCH = 1000
#: No work is older, and the calendar of PostgreSQL ends a few thousand years back.
_OLDEST_MS = 36_500 * UNITS_MS["d"]


class _Group(Command, click.Group):
    """A group of commands with the global options."""


def _duration(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A duration as people write it, to milliseconds."""
    try:
        return None if value is None else parse_duration(value)
    except DurationError as error:
        raise click.BadParameter(error.message, ctx, param) from error


_database = click.option(
    "--database",
    metavar="URL",
    help="Which database, such as postgresql://host/name or mongodb://host/name; else the setting "
    "AFL_DATABASE_URL.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")


@click.group("db", cls=_Group)
def command() -> None:
    """Look after the database of AgentFlow.

    Each command takes --json.
    """


@command.command("migrate", cls=Command)
@_database
@_json
@click.pass_context
def migrate(ctx: click.Context, database: str | None, as_json: bool) -> None:
    """Bring the schema up to date; safe to run at any time and from several places at once."""
    terminal = ctx.ensure_object(Terminal)
    applied = _migrations().migrate(_url(ctx, database))
    if as_json:
        names = [f"{each.number:04}_{each.name}" for each in applied]
        terminal.json({"version": 1, "applied": names})
        return
    for each in applied:
        terminal.say(f"applied {each.number:04}_{each.name}")
    terminal.say(
        f"{count(len(applied), 'migration')} applied" if applied else "nothing to do: up to date"
    )


@command.command("status", cls=Command)
@_database
@_json
@click.pass_context
def status(ctx: click.Context, database: str | None, as_json: bool) -> None:
    """List the migrations, and fail if one is pending."""
    terminal = ctx.ensure_object(Terminal)
    steps = _migrations().status(_url(ctx, database))
    rows = [
        (f"{step.migration.number:04}_{step.migration.name}", step.applied_at) for step in steps
    ]
    pending = sum(applied_at is None for _, applied_at in rows)
    if as_json:
        migrations = [
            {"name": name, "applied_at": None if at is None else at.isoformat()}
            for name, at in rows
        ]
        terminal.json({"version": 1, "pending": pending, "migrations": migrations})
    else:
        for name, at in rows:
            when = "pending" if at is None else f"applied {at:%Y-%m-%d %H:%M}"
            terminal.data(f"{name}  {when}\n")
        if pending:
            terminal.help("`afl db migrate` applies what is pending")
    if pending:
        ctx.exit(exit_codes.FAILED)


@command.command("rotate", cls=Command)
@click.option(
    "--older-than",
    "older_than_ms",
    callback=_duration,
    metavar="AGE",
    help="How long ago a run must have finished, such as 30d; else the setting AFL_RETENTION, "
    "else 30d.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop when N runs or tasks are removed; a run goes whole, so it may be a few more.",
)
@_database
@_json
@click.pass_context
def rotate(
    ctx: click.Context,
    older_than_ms: int | None,
    limit: int | None,
    database: str | None,
    as_json: bool,
) -> None:
    """Remove runs that finished long ago, with their steps and tasks, in small transactions.

    Dead letters go with their runs, and log lines when the last of their stream is that old. The
    audit trail has an age of its own, the setting AFL_AUDIT_RETENTION, else 52w. It is safe to run
    at any time and from several places at once; what is removed stays removed when it is
    interrupted.
    """
    terminal = ctx.ensure_object(Terminal)
    url = _url(ctx, database)
    settings = Settings.load()
    _refuse_pending(url)
    age = _age(settings.retention_ms if older_than_ms is None else older_than_ms)
    runs, removed = _rotate(url, age, limit)
    forgotten = _rotate_audit(url, _age(settings.audit_retention_ms), limit)
    reached = limit is not None and max(removed, runs) >= limit
    if as_json:
        told = {"removed": removed, "runs_removed": runs, "audit_removed": forgotten}
        terminal.json({"version": 1, **told, "limit_reached": reached})
        return
    gone = [count(n, what) for n, what in ((runs, "run"), (removed, "task")) if n]
    terminal.say(f"removed {' and '.join(gone)}" if gone else "nothing to do: no run is that old")
    if forgotten:
        terminal.say(f"removed from the audit trail: {forgotten}")
    if reached:
        terminal.help("the limit is reached and there may be more; run the command again for them")


def _age(ms: int) -> timedelta:
    return timedelta(milliseconds=min(ms, _OLDEST_MS))


def _refuse_pending(url: str) -> None:
    pending = sum(step.applied_at is None for step in _migrations().status(url))
    if pending:
        raise CommandError(
            f"the schema of the database is not up to date: {count(pending, 'migration')} pending",
            help="`afl db migrate` applies what is pending",
        )


def _rotate(url: str, older_than: timedelta, limit: int | None) -> tuple[int, int]:
    """Removes old runs, first their tasks. Answers how many runs and tasks have gone."""
    from afl.app.engines import known_engine

    engine = known_engine(url)
    with engine.connect(engine.persistence, url, max_size=1) as persistence:
        store = persistence.kernel
        tasks = _remove("task", lambda most: store.rotate(older_than, most), limit)
        runs = _remove("run", lambda most: persistence.forget_runs(older_than, most), limit)
        # usage stays: the accounts outlive the runs
        engine.load(engine.turns)(store).forget_closed()
    _rotate_logs(url, older_than, limit)
    return runs, tasks


def _remove(what: str, some: Callable[[int], int], limit: int | None) -> int:
    """Removes batch by batch, up to a limit. Answers how many have gone."""
    from afl.kernel.errors import StoreUnavailable

    removed = 0
    while limit is None or removed < limit:
        batch = _BATCH if limit is None else min(_BATCH, limit - removed)
        try:
            gone = some(batch)
        except StoreUnavailable as error:
            raise CommandError(
                f"stopped after {count(removed, what)}: {error.message}",
                help="what is removed stays removed; run the command again for the rest",
            ) from error
        if not gone:
            break
        removed += gone
    return removed


def _rotate_logs(url: str, older_than: timedelta, limit: int | None) -> None:
    """Removes log lines of streams whose last line is that old."""
    from afl.app.log_reading import stored_logs

    with stored_logs(url) as logs:
        _remove("log stream", lambda most: logs.rotate(older_than, most), limit)


def _rotate_audit(url: str, older_than: timedelta, limit: int | None) -> int:
    """Removes old entries of the audit trail. Answers how many have gone."""
    from afl.app.engines import known_engine

    engine = known_engine(url)
    with engine.connect(engine.server, url, max_size=1) as store:
        return _remove("audit record", lambda most: store.rotate_audit(older_than, most), limit)


def _url(ctx: click.Context, given: str | None) -> str:
    url = given or Settings.load().database_url
    if url is None:
        raise click.UsageError("There is no database: use --database or AFL_DATABASE_URL.", ctx)
    refuse_server(url)
    return url


def _migrations() -> ModuleType:
    from afl.app import migrating

    return migrating
