"""`afl schedules create`."""

from __future__ import annotations

from datetime import timedelta

import click

from afl.app.schedules import Schedules
from afl.cli.errors import RequestError
from afl.cli.framework import Command
from afl.cli.running.connection import opened
from afl.cli.running.options import database_option, input_options, json_option, pair, span
from afl.cli.running.schedules import in_zone, schedule_json
from afl.cli.running.workflows import choose, read_values
from afl.cli.terminal import Terminal
from afl.runtime.schedule import CatchUp, Overlap


@click.command("create", cls=Command)
@click.argument("name")
@click.argument("workflow")
@click.option("--cron", metavar="EXPRESSION", help='Five fields, such as "0 3 * * mon-fri".')
@click.option("--every", type=span, metavar="DURATION", help="An interval, such as 15m.")
@click.option("--at", metavar="TIME", help="Once, such as 2027-01-31T09:00.")
@click.option(
    "--zone",
    default="UTC",
    show_default=True,
    metavar="ZONE",
    help="The time zone of --cron, and of times without an offset, such as Europe/Berlin.",
)
@click.option("--start", metavar="TIME", help="Nothing before; --every counts from it.")
@click.option("--end", metavar="TIME", help="Nothing after.")
@click.option("--jitter", type=span, metavar="DURATION", help="Start each up to so much later.")
@click.option(
    "--overlap",
    type=click.Choice([each.value for each in Overlap]),
    default=Overlap.SKIP.value,
    show_default=True,
    help="What to do while a run of it goes on.",
)
@click.option(
    "--catch-up",
    type=click.Choice([each.value for each in CatchUp]),
    default=CatchUp.LAST.value,
    show_default=True,
    help="What to do about fire times that no worker was there for.",
)
@click.option(
    "--catch-up-within",
    type=span,
    metavar="DURATION",
    help="How far back --catch-up all goes.  [default: 1d]",
)
@input_options
@click.option(
    "--program",
    default="default",
    show_default=True,
    metavar="NAME",
    help="The deployment whose program is run.",
)
@click.option(
    "--label",
    "labels",
    type=pair,
    metavar="NAME=VALUE",
    multiple=True,
    help="Of the runs that it starts.",
)
@click.option("--replace", is_flag=True, help="Take the place of the schedule with this name.")
@database_option
@json_option
@click.pass_obj
def create(
    terminal: Terminal,
    name: str,
    workflow: str,
    cron: str | None,
    every: timedelta | None,
    at: str | None,
    zone: str,
    start: str | None,
    end: str | None,
    jitter: timedelta | None,
    overlap: str,
    catch_up: str,
    catch_up_within: timedelta | None,
    pairs: tuple[tuple[str, str], ...],
    inputs_file: str | None,
    program: str,
    labels: tuple[tuple[str, str], ...],
    replace: bool,
    database: str | None,
    as_json: bool,
) -> None:
    """Start a workflow again and again, or once at a time.

    Give one of --cron, --every and --at. WORKFLOW is its full or short name.
    """
    if sum(each is not None for each in (cron, every, at)) != 1:
        raise RequestError(
            "give one of --cron, --every and --at",
            help='such as --cron "0 3 * * *" --zone Europe/Berlin, or --every 15m',
        )
    with opened(database, rings=True) as operations:
        digest = operations.program(program)
        facet = choose(operations.evaluator.plans.get(digest).program, workflow)
        made = Schedules(operations).create(
            name,
            facet.name,
            read_values(facet, pairs, inputs_file),
            cron=cron,
            every=every,
            at=at,
            zone=zone,
            start=start,
            end=end,
            jitter=jitter,
            overlap=overlap,
            catch_up=catch_up,
            catch_up_within=catch_up_within,
            program=program,
            replace=replace,
            labels=dict(labels),
        )
    if as_json:
        terminal.json({"version": 1, "schedules": [schedule_json(made, None)], "next": None})
        return
    terminal.data(f"{made.name}\n")
    terminal.say(f"it fires first at {in_zone(made.next_fire, zone)} ({zone})")
    terminal.help(f"`afl schedules next {made.name}` shows the coming times")
    terminal.help("workers fire it: `afl worker` starts one")
