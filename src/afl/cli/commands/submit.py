"""`afl submit`."""

from __future__ import annotations

from datetime import datetime, timedelta

import click

from afl.cli.errors import NotEndedError
from afl.cli.framework import Command
from afl.cli.live.following import follow
from afl.cli.live.views import view_for
from afl.cli.running.connection import opened
from afl.cli.running.options import (
    database_option,
    input_options,
    json_option,
    moment,
    pair,
    timeout_option,
)
from afl.cli.running.outcomes import Ending, ending_of, exit_code, say_ending
from afl.cli.running.workflows import choose, read_values
from afl.cli.terminal import Terminal
from afl.runtime.entities import Run
from afl.runtime.operations import Operations
from afl.runtime.states import RunState
from afl.runtime.submitting import Conflict


@click.command("submit", cls=Command)
@click.argument("workflow")
@input_options
@click.option(
    "--program",
    default="default",
    show_default=True,
    metavar="NAME",
    help="Which deployment, or the hash of a program.",
)
@click.option("--key", metavar="KEY", help="One run has it: submitting again finds that run.")
@click.option(
    "--conflict",
    type=click.Choice([each.value for each in Conflict]),
    default=Conflict.ATTACH.value,
    show_default=True,
    help="When a run has the key: use it, refuse, or cancel it and start another.",
)
@click.option(
    "--label", "labels", type=pair, metavar="NAME=VALUE", multiple=True, help="To find the run by."
)
@click.option("--priority", type=int, default=None, metavar="N", help="Higher is served first.")
@click.option(
    "--deadline", type=moment, metavar="TIME", help="When it is given up: 2h, or a time with zone."
)
@click.option("--wait", is_flag=True, help="Wait until it has ended, and print its outputs.")
@click.option("--follow", "is_followed", is_flag=True, help="Like --wait, and show its steps.")
@timeout_option
@database_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    workflow: str,
    pairs: tuple[tuple[str, str], ...],
    inputs_file: str | None,
    program: str,
    key: str | None,
    conflict: str,
    labels: tuple[tuple[str, str], ...],
    priority: int | None,
    deadline: timedelta | datetime | None,
    wait: bool,
    is_followed: bool,
    timeout: timedelta | None,
    database: str | None,
    as_json: bool,
) -> None:
    """Start a run of a deployed workflow.

    WORKFLOW is its full or short name. The id of the run is printed; workers advance it.
    """
    terminal = ctx.ensure_object(Terminal)
    waits = wait or is_followed or timeout is not None
    with opened(database, rings=True) as operations:
        digest = operations.program(program)
        facet = choose(operations.evaluator.plans.get(digest).program, workflow)
        run = operations.submit(
            facet.name,
            read_values(facet, pairs, inputs_file),
            program=digest,
            key=key,
            conflict=conflict,
            labels=dict(labels),
            priority=priority,
            deadline=deadline,
        )
        if not waits:
            _say(run, terminal, as_json=as_json)
            return
        ending = _wait(operations, run, terminal, timeout, quiet=as_json or not is_followed)
    _finish(ctx, ending, as_json=as_json)


def _say(run: Run, terminal: Terminal, *, as_json: bool) -> None:
    if as_json:
        terminal.json(Ending(run).as_json())
        return
    terminal.data(f"{run.id}\n")
    terminal.help(f"`afl runs watch {run.id}` shows how it goes on")


def _wait(
    operations: Operations,
    run: Run,
    terminal: Terminal,
    timeout: timedelta | None,
    *,
    quiet: bool,
) -> Ending:
    if not quiet:
        terminal.say(f"run {run.id}")
    try:
        found = follow(operations, run.id, view_for(terminal, quiet=quiet), timeout=timeout)
    except KeyboardInterrupt:
        terminal.help(f"the run goes on; `afl runs watch {run.id}` shows it")
        raise
    return ending_of(operations, found)


def _finish(ctx: click.Context, ending: Ending, *, as_json: bool) -> None:
    terminal = ctx.ensure_object(Terminal)
    run = ending.run
    if as_json:
        terminal.json(ending.as_json())
    elif run.state == RunState.COMPLETED:
        terminal.json(run.outputs or {})
    elif RunState.is_terminal(run.state):
        say_ending(ending, terminal)
    else:
        raise NotEndedError(
            f"run {run.id} has not ended in time",
            help=f"it goes on; `afl runs why {run.id}` says what it waits for",
        )
    ctx.exit(exit_code(run))
