"""`afl schedules list`, `show` and `next`."""

from __future__ import annotations

import json

import click

from afl.cli.framework import Command
from afl.cli.running.connection import opened
from afl.cli.running.options import database_option, json_option, limit_option
from afl.cli.running.schedules import (
    fire_time_json,
    firing_json,
    firing_row,
    in_zone,
    last_run,
    schedule_json,
    shown_lines,
)
from afl.cli.running.tables import local, table
from afl.cli.terminal import Terminal
from afl.runtime.scheduling.checking import times_text
from afl.runtime.views import state_word


@click.command("list", cls=Command)
@click.option("--after", metavar="NAME", help="Only from after this one: the next page.")
@limit_option
@database_option
@json_option
@click.pass_obj
def list_schedules(
    terminal: Terminal, after: str | None, limit: int, database: str | None, as_json: bool
) -> None:
    """List schedules with their next fire time and last run."""
    with opened(database) as operations:
        found = operations.schedules.list(after=after, limit=limit + 1)
        listed = [(each, last_run(operations, each)) for each in found[:limit]]
    following = listed[-1][0].name if len(found) > limit else None
    if as_json:
        schedules = [schedule_json(each, run) for each, run in listed]
        terminal.json({"version": 1, "schedules": schedules, "next": following})
        return
    rows = [
        (
            each.name,
            each.state,
            each.workflow,
            times_text(each.times),
            each.times.zone,
            "" if each.paused else local(each.next_fire),
            "" if run is None else f"{run.id} {state_word(run)}",
        )
        for each, run in listed
    ]
    terminal.data(table(("name", "state", "workflow", "when", "zone", "next", "last run"), rows))
    if not rows:
        terminal.say("there are no schedules")
        terminal.help('`afl schedules create NAME WORKFLOW --cron "0 3 * * *"` makes one')
    elif following is not None:
        terminal.help(f"there are more; `--after {following}` shows the next page")


@click.command("show", cls=Command)
@click.argument("name")
@limit_option
@database_option
@json_option
@click.pass_obj
def show(terminal: Terminal, name: str, limit: int, database: str | None, as_json: bool) -> None:
    """Show a schedule, and what became of its last fire times."""
    with opened(database) as operations:
        schedule = operations.schedules.get(name)
        run = last_run(operations, schedule)
        firings = operations.schedules.history(name, limit)
    if as_json:
        shown = {**schedule_json(schedule, run), "firings": [firing_json(each) for each in firings]}
        terminal.json({"version": 1, "schedules": [shown], "next": None})
        return
    for title, value in shown_lines(schedule, run):
        if value:
            terminal.data(f"{title:<10}{value}\n")
    for given, what in schedule.inputs.items():
        terminal.data(f"  {given} = {json.dumps(what, ensure_ascii=False)}\n")
    if firings:
        terminal.data("\n")
    header = ("fire time", "outcome", "count", "run", "note")
    terminal.data(table(header, [firing_row(each) for each in firings]))
    terminal.help(f"`afl schedules next {name}` shows when it fires")


@click.command("next", cls=Command)
@click.argument("name")
@click.option(
    "-n",
    "count",
    type=click.IntRange(min=1, max=1000),
    default=5,
    show_default=True,
    metavar="N",
    help="How many.",
)
@database_option
@json_option
@click.pass_obj
def next_times(
    terminal: Terminal, name: str, count: int, database: str | None, as_json: bool
) -> None:
    """Show when a schedule fires next, in its zone and in UTC."""
    with opened(database) as operations:
        schedule = operations.schedules.get(name)
        moments = operations.schedules.next(name, count)
    zone = schedule.times.zone
    if as_json:
        times = [fire_time_json(each, zone) for each in moments]
        terminal.json({"version": 1, "name": name, "zone": zone, "times": times})
        return
    rows = [(in_zone(each, zone), local(each)) for each in moments]
    terminal.data(table((zone, "utc"), rows))
    if not rows:
        terminal.say("it never fires again")
    if schedule.paused:
        terminal.say("it is paused, so it does not fire at these times")
        terminal.help(f"`afl schedules resume {name}` lets it go on")
