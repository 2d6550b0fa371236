"""`afl runs retry`, `fork` and `rerun`: new runs made of runs that there were."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from afl.cli.framework import Command
from afl.cli.running.bulk import Change, bulk_options, each, report, targets
from afl.cli.running.connection import opened
from afl.cli.running.options import database_option, input_options, json_option
from afl.cli.running.workflows import read_values
from afl.cli.terminal import Terminal
from afl.ir.model import Facet
from afl.runtime.entities import Run
from afl.runtime.errors import UnknownStep
from afl.runtime.operations import Operations
from afl.runtime.states import RunState
from afl.runtime.step import ROOT, step_id
from afl.runtime.views import run_json, state_word

Verb = Callable[[Operations, str], Run]


@click.command("retry", cls=Command)
@bulk_options
@click.option("--step", metavar="PATH", help="This step must have failed; for one run.")
@click.option("--force", is_flag=True, help="Also repeat what cannot be taken back.")
@click.pass_context
def retry(
    ctx: click.Context,
    runs: tuple[str, ...],
    pairs: tuple[tuple[str, str], ...],
    limit: int,
    dry_run: bool,
    database: str | None,
    as_json: bool,
    step: str | None,
    force: bool,
) -> None:
    """Do again what failed in runs, and take over what they have finished.

    Each makes a new run, whose id is printed beside the old one.
    """
    if step is not None and len(runs) != 1:
        raise click.UsageError("--step needs exactly one RUN.", ctx)
    changes = _apply(
        database,
        (runs, pairs, limit, dry_run),
        lambda operations, run: operations.retry(run, step, force=force),
        lambda run: run.state in (RunState.FAILED, RunState.CANCELED),
    )
    _report(ctx, changes, dry_run=dry_run, as_json=as_json)


@click.command("rerun", cls=Command)
@bulk_options
@click.option(
    "--program", metavar="NAME", help="Of this deployment, or hash, instead of the run's own."
)
@click.pass_context
def rerun(
    ctx: click.Context,
    runs: tuple[str, ...],
    pairs: tuple[tuple[str, str], ...],
    limit: int,
    dry_run: bool,
    database: str | None,
    as_json: bool,
    program: str | None,
) -> None:
    """Start runs afresh with the inputs of others.

    Each makes a new run, whose id is printed beside the old one.
    """
    changes = _apply(
        database,
        (runs, pairs, limit, dry_run),
        lambda operations, run: operations.rerun(run, program=program),
        lambda run: True,
    )
    _report(ctx, changes, dry_run=dry_run, as_json=as_json)


@click.command("fork", cls=Command)
@click.argument("run", metavar="RUN")
@click.option("--from", "step", default=ROOT, metavar="PATH", help="From this step on.")
@input_options
@click.option("--force", is_flag=True, help="Also repeat what cannot be taken back.")
@database_option
@json_option
@click.pass_obj
def fork(
    terminal: Terminal,
    run: str,
    step: str,
    pairs: tuple[tuple[str, str], ...],
    inputs_file: str | None,
    force: bool,
    database: str | None,
    as_json: bool,
) -> None:
    """Make a new run from a step of an ended one on, with inputs that may be edited.

    Finished steps that do not depend on the one of --from are taken over. Without it the inputs are
    those of the run, and steps whose arguments stay the same are taken over.
    """
    with opened(database, rings=True) as operations:
        facet = _facet(operations, operations.get(run), step)
        values = read_values(facet, pairs, inputs_file)
        made = operations.fork(run, step, values, force=force)
    if as_json:
        terminal.json({"version": 1, "run": run_json(made)})
        return
    terminal.data(f"{made.id}\n")
    terminal.help(f"`afl runs watch {made.id}` shows how it goes on")


def _facet(operations: Operations, run: Run, step: str) -> Facet:
    """What a step calls; its parameters are the inputs that can be edited."""
    plan = operations.evaluator.plans.get(run.program)
    if step == ROOT:
        return plan.facet(run.workflow).facet
    row = operations.persistence.get_step(step_id(run.id, step))
    if row is None or not row.facet_name:
        raise UnknownStep(
            f"Run {run.id} has no step `{step}`. `afl runs tree {run.id}` shows its steps."
        )
    return plan.facet(row.facet_name).facet


def _apply(
    database: str | None,
    wanted: tuple[Sequence[str], Sequence[tuple[str, str]], int, bool],
    verb: Verb,
    applies: Callable[[Run], bool],
) -> list[Change]:
    runs, pairs, limit, dry_run = wanted
    with opened(database, rings=not dry_run) as operations:

        def act(run: str) -> Change:
            made = verb(operations, run)
            return Change(run, state_word(made), made=made.id)

        found = targets(operations, runs, pairs, limit, applies)
        items = [Change(run.id, state_word(run)) for run in found]
        return each(items, act, dry_run=dry_run)


def _report(ctx: click.Context, changes: Sequence[Change], *, dry_run: bool, as_json: bool) -> None:
    then = "`afl runs watch {}` shows how it goes on"
    report(ctx, changes, done="started again", then=then, dry_run=dry_run, as_json=as_json)
