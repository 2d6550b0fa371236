"""`afl db`: the schema of the database that AgentFlow keeps its work in."""

from __future__ import annotations

from types import ModuleType

import click

from afl.base.settings import Settings
from afl.cli import exit_codes
from afl.cli.errors import CommandError
from afl.cli.framework import Command
from afl.cli.terminal import Terminal, count


class _Group(Command, click.Group):
    """A group of commands with the global options."""


_database = click.option(
    "--database",
    metavar="URL",
    help="Which database, such as postgresql://host/name; else the setting AFL_DATABASE_URL.",
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


def _url(ctx: click.Context, given: str | None) -> str:
    url = given or Settings.load().database_url
    if url is None:
        raise click.UsageError("There is no database: use --database or AFL_DATABASE_URL.", ctx)
    return url


def _migrations() -> ModuleType:
    try:
        from afl.kernel.postgres import migrate
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise CommandError(
            "the PostgreSQL store needs psycopg, which is not installed",
            help="install it with `pip install 'afl-agentflow[postgres]'`",
        ) from error
    return migrate
