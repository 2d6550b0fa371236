"""Verbs that are done to many things at once: to those named, or to all that a filter finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from afl.base.errors import AflError
from afl.cli import exit_codes
from afl.cli.errors import RequestError
from afl.cli.running.options import database_option, json_option, pair
from afl.cli.running.selection import Filter, find
from afl.cli.terminal import Terminal, count
from afl.kernel.errors import StoreUnavailable
from afl.kernel.model import Json
from afl.runtime.entities import Run
from afl.runtime.operations import Operations

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one of them."""

    id: str
    #: the state that it has now, or had if nothing was done
    state: str
    #: what was made of it: a run that repeats it, a task
    made: str | None = None
    error: str | None = None

    def as_json(self) -> dict[str, Json]:
        return {"id": self.id, "state": self.state, "made": self.made, "error": self.error}


def bulk_options(command: F) -> F:
    """What a verb takes that is done to many runs."""
    for option in (
        json_option,
        database_option,
        click.option("--dry-run", is_flag=True, help="Only list what would be done."),
        click.option(
            "--limit",
            type=click.IntRange(min=1),
            default=1000,
            show_default=True,
            metavar="N",
            help="At most so many runs that the filter finds.",
        ),
        click.option(
            "--filter",
            "pairs",
            type=pair,
            metavar="NAME=VALUE",
            multiple=True,
            help="All runs that fit, instead of named ones; see `afl runs list`.",
        ),
        click.argument("runs", metavar="[RUN]...", nargs=-1),
    ):
        command = option(command)
    return command


def targets(
    operations: Operations,
    runs: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    limit: int,
    applies: Callable[[Run], bool],
) -> list[Run]:
    """The runs that a verb is for. A filter leaves out those that it cannot be done to."""
    if runs and pairs:
        raise RequestError("name the runs or use --filter, not both")
    if runs:
        return [operations.get(run) for run in dict.fromkeys(runs)]
    if not pairs:
        raise RequestError(
            "there is no run to do this to",
            help="name runs, or use --filter; `afl runs list` shows what there is",
        )
    found = find(operations, Filter.of(pairs), limit=limit)
    return [run for run in found if applies(run)]


def each(items: Sequence[Change], act: Callable[[str], Change], *, dry_run: bool) -> list[Change]:
    """Does it to each. One that refuses does not keep the others from being done."""
    return list(items) if dry_run else [_one(item, act) for item in items]


def _one(item: Change, act: Callable[[str], Change]) -> Change:
    try:
        return act(item.id)
    except StoreUnavailable:
        raise
    except AflError as error:
        return Change(item.id, item.state, error=error.message)


def report(
    ctx: click.Context,
    changes: Sequence[Change],
    *,
    done: str,
    what: str = "run",
    then: str = "",
    dry_run: bool,
    as_json: bool,
) -> None:
    """Tells what became of each; exits with 1 if one has refused.

    Args:
        done: the verb in the past, such as `canceled`.
        what: what they are, such as `run`.
        then: what to do next, with `{}` for the id of the first that it was done to, or of what was
            made of it.
    """
    terminal = ctx.ensure_object(Terminal)
    failed = [change for change in changes if change.error is not None]
    if as_json:
        terminal.json(
            {
                "version": 1,
                "dry_run": dry_run,
                "changes": [change.as_json() for change in changes],
            }
        )
    else:
        for change in changes:
            if change.error is None:
                words = (change.id, change.state, change.made or "")
                terminal.data("  ".join(word for word in words if word) + "\n")
            else:
                terminal.error(change.error)
        number = count(len(changes) - len(failed), what)
        terminal.say(f"{number} would be {done}" if dry_run else f"{number} {done}")
        first = next((change for change in changes if change.error is None), None)
        if then and first is not None and not dry_run:
            terminal.help(then.format(first.made or first.id))
    if failed:
        ctx.exit(exit_codes.FAILED)
