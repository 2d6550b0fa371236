"""`afl runs list`, `get`, `tree`, `watch`, `result`, `why` and `export`."""

from __future__ import annotations

import json
from datetime import timedelta

import click

from afl.cli.files import write_text
from afl.cli.framework import Command
from afl.cli.live.following import follow
from afl.cli.live.lines import Positions, lines_of
from afl.cli.live.views import view_for
from afl.cli.running.connection import opened
from afl.cli.running.options import (
    database_option,
    json_option,
    limit_option,
    pair,
    timeout_option,
)
from afl.cli.running.outcomes import ending_of, exit_code, say_ending
from afl.cli.running.selection import Filter, find, known_state
from afl.cli.running.tables import age, local, table
from afl.cli.terminal import Terminal
from afl.runtime.entities import Run
from afl.runtime.errors import StillRunning
from afl.runtime.reasons import Why
from afl.runtime.states import RunState
from afl.runtime.superseded import Superseded
from afl.runtime.views import run_json, state_word

run_argument = click.argument("run", metavar="RUN")


@click.command("list", cls=Command)
@click.option("--state", metavar="STATE", help="The same as --filter state=STATE.")
@click.option(
    "--filter",
    "pairs",
    type=pair,
    metavar="NAME=VALUE",
    multiple=True,
    help="Only runs with this state, workflow, parent, label.NAME, or older or newer than an age.",
)
@click.option("--roots", is_flag=True, help="Leave out runs that another run has called.")
@click.option("--before", metavar="RUN", help="Only runs from before this one: the next page.")
@limit_option
@database_option
@json_option
@click.pass_context
def list_runs(
    ctx: click.Context,
    state: str | None,
    pairs: tuple[tuple[str, str], ...],
    roots: bool,
    before: str | None,
    limit: int,
    database: str | None,
    as_json: bool,
) -> None:
    """List runs, the newest first."""
    terminal = ctx.ensure_object(Terminal)
    wanted = Filter.of(pairs)
    wanted.roots = roots
    if state is not None:
        wanted.state = known_state(state)
    with opened(database) as operations:
        runs = find(operations, wanted, limit=limit + 1, before=before)
        now = operations.persistence.now()
    following = runs[limit - 1].id if len(runs) > limit else None
    runs = runs[:limit]
    if as_json:
        terminal.json({"version": 1, "runs": [run_json(run) for run in runs], "next": following})
        return
    rows = [
        (run.id, state_word(run), run.workflow, age(run.created_at, now), run.parent or "")
        for run in runs
    ]
    terminal.data(table(("run", "state", "workflow", "age", "parent"), rows))
    if not runs:
        terminal.say("there is no such run")
    elif following is not None:
        terminal.help(f"there are more; `--before {following}` shows the next page")


@click.command("get", cls=Command)
@run_argument
@database_option
@json_option
@click.pass_obj
def get(terminal: Terminal, run: str, database: str | None, as_json: bool) -> None:
    """Show a run, and why it is where it is."""
    with opened(database) as operations:
        found = operations.get(run)
        reason = operations.why(run)
        superseded = operations.superseded(run)
    if as_json:
        about = {"run": run_json(found), "why": reason.as_json()}
        terminal.json(
            {"version": 1, **about, "superseded": [each.as_json() for each in superseded]}
        )
        return
    for name, text in (*_facts(found, reason), *map(_late, superseded)):
        terminal.data(f"{name:<10}{text}\n")
    terminal.help(_next_command(found))


def _facts(run: Run, reason: Why) -> list[tuple[str, str]]:
    facts = [
        ("run", run.id),
        ("workflow", run.workflow),
        ("program", run.program),
        ("state", state_word(run)),
        ("why", reason.sentence),
        ("inputs", _compact(run.inputs)),
    ]
    if run.outputs is not None:
        facts.append(("outputs", _compact(run.outputs)))
    if run.labels:
        facts.append(("labels", ", ".join(f"{name}={text}" for name, text in run.labels.items())))
    for name, text in (
        ("key", run.key),
        ("parent", run.parent),
        ("fork of", None if run.fork is None else run.fork.run),
        ("created", local(run.created_at)),
        ("finished", local(run.finished_at)),
    ):
        if text:
            facts.append((name, text))
    return facts


def _late(result: Superseded) -> tuple[str, str]:
    """A result that does not count, beside the one that does."""
    return "too late", f"{result.path} by {result.worker}: {_compact(result.body)}"


def _next_command(run: Run) -> str:
    match run.state:
        case RunState.COMPLETED:
            return f"`afl runs result {run.id}` prints its outputs"
        case RunState.FAILED:
            return f"`afl runs retry {run.id}` does again what failed, and keeps what is done"
        case RunState.CANCELED:
            return f"`afl runs rerun {run.id}` starts it afresh"
    return f"`afl runs watch {run.id}` shows how it goes on"


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@click.command("tree", cls=Command)
@run_argument
@click.option("--after", metavar="PATH", help="Only steps from behind this path: the next page.")
@limit_option
@database_option
@json_option
@click.pass_obj
def tree(
    terminal: Terminal,
    run: str,
    after: str | None,
    limit: int,
    database: str | None,
    as_json: bool,
) -> None:
    """Show the steps of a run as a tree."""
    with opened(database) as operations:
        found = operations.get(run)
        page = operations.tree(run, after=after, limit=limit)
        lines = [] if as_json else lines_of(page, Positions(operations, found))
    if as_json:
        root = None if page.root is None else page.root.as_json()
        terminal.json({"version": 1, "run": page.run, "root": root, "next": page.next})
        return
    terminal.data(f"{found.workflow} {state_word(found)}\n")
    for line in lines:
        terminal.data(f"  {line.text()}  {terminal.dim(line.path)}\n")
    if page.next is not None:
        terminal.help(f"there are more; `--after {page.next}` shows the next page")


@click.command("watch", cls=Command)
@run_argument
@timeout_option
@database_option
@json_option
@click.pass_context
def watch(
    ctx: click.Context, run: str, timeout: timedelta | None, database: str | None, as_json: bool
) -> None:
    """Show a run until it has ended, then its outputs."""
    terminal = ctx.ensure_object(Terminal)
    with opened(database) as operations:
        found = follow(operations, run, view_for(terminal, quiet=as_json), timeout=timeout)
        ending = ending_of(operations, found)
    if as_json:
        terminal.json(ending.as_json())
    elif found.state == RunState.COMPLETED:
        terminal.json(found.outputs or {})
    elif RunState.is_terminal(found.state):
        say_ending(ending, terminal)
    else:
        terminal.error(f"run {run} has not ended in time")
        terminal.help(f"it goes on; `afl runs why {run}` says what it waits for")
    ctx.exit(exit_code(found))


@click.command("result", cls=Command)
@run_argument
@click.option("--wait", is_flag=True, help="Wait until the run has ended.")
@timeout_option
@database_option
@json_option
@click.pass_context
def result(
    ctx: click.Context,
    run: str,
    wait: bool,
    timeout: timedelta | None,
    database: str | None,
    as_json: bool,
) -> None:
    """Print the outputs of a run that has ended."""
    terminal = ctx.ensure_object(Terminal)
    patience = timeout if wait or timeout is not None else timedelta(0)
    with opened(database) as operations:
        try:
            found = operations.wait(run, patience)
        except StillRunning:
            if not as_json:
                raise
            found = operations.get(run)
        ending = ending_of(operations, found)
    if as_json:
        terminal.json(ending.as_json())
    elif found.state == RunState.COMPLETED:
        terminal.json(found.outputs or {})
    else:
        say_ending(ending, terminal)
    ctx.exit(exit_code(found))


@click.command("why", cls=Command)
@run_argument
@click.argument("step", metavar="[STEP]", required=False)
@database_option
@json_option
@click.pass_obj
def why(
    terminal: Terminal, run: str, step: str | None, database: str | None, as_json: bool
) -> None:
    """Say what a run, or a step of it, waits for, or how it ended."""
    with opened(database) as operations:
        found = operations.why(run, step)
    if as_json:
        terminal.json({"version": 1, **found.as_json()})
        return
    for answer in found.answers:
        terminal.data(f"{answer.sentence}\n")
        if answer.command is not None:
            terminal.help(f"`{answer.command}`")
    if found.is_cut:
        terminal.say("and more")


@click.command("export", cls=Command)
@run_argument
@click.option("-o", "--output", metavar="FILE", help="Write to a file instead of standard output.")
@click.option("--json", is_flag=True, expose_value=False, help="It is JSON with this and without.")
@database_option
@click.pass_obj
def export(terminal: Terminal, run: str, output: str | None, database: str | None) -> None:
    """Write everything that is known of a run as JSON: steps, tasks, calls and log lines."""
    with opened(database) as operations:
        bundle = operations.export(run)
    if output is None or output == "-":
        terminal.json(bundle)
        return
    write_text(output, json.dumps(bundle, indent=2, ensure_ascii=False) + "\n")
    terminal.say(f"wrote run {run} to {output}")
