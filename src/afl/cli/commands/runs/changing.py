"""`afl runs cancel`, `pause` and `resume`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from afl.cli.framework import Command
from afl.cli.running.bulk import Change, bulk_options, each, report, targets
from afl.cli.running.connection import opened
from afl.runtime.entities import Run
from afl.runtime.operations import Operations
from afl.runtime.states import RunState
from afl.runtime.views import state_word

Verb = Callable[[Operations, str], Run]


@click.command("cancel", cls=Command)
@bulk_options
@click.option("--force", is_flag=True, help="At once, whatever a worker is doing with it.")
@click.option("--reason", default="", metavar="TEXT", help="Why, for whoever looks at it later.")
@click.pass_context
def cancel(
    ctx: click.Context,
    runs: tuple[str, ...],
    pairs: tuple[tuple[str, str], ...],
    limit: int,
    dry_run: bool,
    database: str | None,
    as_json: bool,
    force: bool,
    reason: str,
) -> None:
    """Stop runs. What they have called is stopped with them."""
    changes = _apply(
        database,
        (runs, pairs, limit, dry_run),
        lambda operations, run: operations.cancel(run, force=force, reason=reason),
        lambda run: True,
    )
    then = "`afl runs rerun {}` starts it afresh"
    report(ctx, changes, done="canceled", then=then, dry_run=dry_run, as_json=as_json)


@click.command("pause", cls=Command)
@bulk_options
@click.pass_context
def pause(
    ctx: click.Context,
    runs: tuple[str, ...],
    pairs: tuple[tuple[str, str], ...],
    limit: int,
    dry_run: bool,
    database: str | None,
    as_json: bool,
) -> None:
    """Let nothing more start in runs. What has begun goes on."""
    changes = _apply(
        database,
        (runs, pairs, limit, dry_run),
        lambda operations, run: operations.pause(run),
        lambda run: not run.pause_requested,
    )
    then = "`afl runs resume {}` lets it go on"
    report(ctx, changes, done="paused", then=then, dry_run=dry_run, as_json=as_json)


@click.command("resume", cls=Command)
@bulk_options
@click.pass_context
def resume(
    ctx: click.Context,
    runs: tuple[str, ...],
    pairs: tuple[tuple[str, str], ...],
    limit: int,
    dry_run: bool,
    database: str | None,
    as_json: bool,
) -> None:
    """Let paused runs go on."""
    changes = _apply(
        database,
        (runs, pairs, limit, dry_run),
        lambda operations, run: operations.resume(run),
        lambda run: run.pause_requested,
    )
    then = "`afl runs watch {}` shows how it goes on"
    report(ctx, changes, done="resumed", then=then, dry_run=dry_run, as_json=as_json)


def _apply(
    database: str | None,
    wanted: tuple[Sequence[str], Sequence[tuple[str, str]], int, bool],
    verb: Verb,
    applies: Callable[[Run], bool],
) -> list[Change]:
    runs, pairs, limit, dry_run = wanted
    with opened(database, rings=not dry_run) as operations:

        def act(run: str) -> Change:
            return Change(run, state_word(verb(operations, run)))

        found = targets(
            operations,
            runs,
            pairs,
            limit,
            lambda run: not RunState.is_terminal(run.state) and applies(run),
        )
        items = [Change(run.id, state_word(run)) for run in found]
        return each(items, act, dry_run=dry_run)
