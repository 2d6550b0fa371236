"""`afl schedules pause`, `resume`, `trigger`, `backfill` and `delete`."""

from __future__ import annotations

import click

from afl.app.schedules import Schedules
from afl.cli import exit_codes
from afl.cli.framework import Command
from afl.cli.running.bulk import Change
from afl.cli.running.connection import opened
from afl.cli.running.options import database_option, json_option
from afl.cli.running.schedules import firing_json, in_zone, last_run, schedule_json
from afl.cli.terminal import Terminal, count
from afl.runtime.schedule import Outcome, Schedule


@click.command("pause", cls=Command)
@click.argument("name")
@database_option
@json_option
@click.pass_obj
def pause(terminal: Terminal, name: str, database: str | None, as_json: bool) -> None:
    """Let a schedule fire no more until it is resumed.

    Runs that it has started go on.
    """
    with opened(database) as operations:
        schedule = operations.schedules.pause(name)
        run = last_run(operations, schedule)
    if as_json:
        terminal.json({"version": 1, "schedules": [schedule_json(schedule, run)], "next": None})
        return
    terminal.say(f"paused {name}")
    terminal.help(f"`afl schedules resume {name}` lets it go on")


@click.command("resume", cls=Command)
@click.argument("name")
@database_option
@json_option
@click.pass_obj
def resume(terminal: Terminal, name: str, database: str | None, as_json: bool) -> None:
    """Let a paused schedule go on with its next fire time.

    Those of the pause count as missed, and are not caught up; see backfill.
    """
    with opened(database, rings=True) as operations:
        schedule = operations.schedules.resume(name)
        run = last_run(operations, schedule)
    if as_json:
        terminal.json({"version": 1, "schedules": [schedule_json(schedule, run)], "next": None})
        return
    terminal.say(f"resumed {name}: {_next(schedule)}")
    terminal.help(f"`afl schedules show {name}` shows what was missed meanwhile")


@click.command("trigger", cls=Command)
@click.argument("name")
@database_option
@json_option
@click.pass_obj
def trigger(terminal: Terminal, name: str, database: str | None, as_json: bool) -> None:
    """Start a run of a schedule now, beside its fire times.

    It is started even if the schedule is paused, or a run of it goes on.
    """
    with opened(database, rings=True) as operations:
        firing = operations.schedules.trigger(name)
    if as_json:
        terminal.json(
            {
                "version": 1,
                "name": name,
                "dry_run": False,
                "missing": [],
                "known": [],
                "firings": [firing_json(firing)],
            }
        )
        return
    terminal.data(f"{firing.run}\n")
    terminal.help(f"`afl runs watch {firing.run}` shows how it goes on")


@click.command("backfill", cls=Command)
@click.argument("name")
@click.option("--from", "start", required=True, metavar="TIME", help="The first fire time.")
@click.option("--to", "end", required=True, metavar="TIME", help="The last fire time.")
@click.option("--dry-run", is_flag=True, help="Only list what would be started.")
@database_option
@json_option
@click.pass_context
def backfill(
    ctx: click.Context,
    name: str,
    start: str,
    end: str,
    dry_run: bool,
    database: str | None,
    as_json: bool,
) -> None:
    """Start a run for each fire time in a stretch of the past that none was started for.

    Times are as in 2027-01-31T09:00, in the zone of the schedule, or with an offset. All of them
    are started at once. Doing it again starts nothing twice.
    """
    terminal = ctx.ensure_object(Terminal)
    with opened(database, rings=True) as operations:
        zone = operations.schedules.get(name).times.zone
        done = Schedules(operations).backfill(name, start, end, dry_run=dry_run)
    failed = [each for each in done.started if each.outcome is Outcome.FAILED]
    if as_json:
        terminal.json(
            {
                "version": 1,
                "name": name,
                "dry_run": dry_run,
                "missing": [each.isoformat() for each in done.missing],
                "known": [each.isoformat() for each in done.known],
                "firings": [firing_json(each) for each in done.started],
            }
        )
    else:
        runs = {each.fire_at: each.run or "" for each in done.started}
        for moment in done.missing:
            terminal.data(f"{in_zone(moment, zone)}  {runs.get(moment, '')}".rstrip() + "\n")
        verb = "would be started" if dry_run else "started"
        terminal.say(
            f"{count(len(done.missing) - len(failed), 'run')} {verb}; "
            f"{count(len(done.known), 'fire time')} had one"
        )
        terminal.help(f"`afl runs list --filter label.afl.schedule={name}` shows all its runs")
    if failed:
        ctx.exit(exit_codes.FAILED)


@click.command("delete", cls=Command)
@click.argument("name")
@database_option
@json_option
@click.pass_obj
def delete(terminal: Terminal, name: str, database: str | None, as_json: bool) -> None:
    """Remove a schedule with its history. Runs that it has started go on."""
    with opened(database) as operations:
        operations.schedules.delete(name)
    if as_json:
        change = Change(name, "deleted")
        terminal.json({"version": 1, "dry_run": False, "changes": [change.as_json()]})
        return
    terminal.say(f"deleted {name}")
    terminal.help("`afl schedules list` shows those that are left")


def _next(schedule: Schedule) -> str:
    if schedule.next_fire is None:
        return "it never fires again"
    return f"it fires next at {in_zone(schedule.next_fire, schedule.times.zone)}"
