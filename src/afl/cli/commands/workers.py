"""`afl workers`: who serves what."""

from __future__ import annotations

import click

from afl.cli.framework import Command
from afl.cli.running.bulk import Change, each, report
from afl.cli.running.connection import opened
from afl.cli.running.groups import Group
from afl.cli.running.options import database_option, json_option
from afl.cli.running.tables import age, table
from afl.cli.terminal import Terminal
from afl.kernel.model import Worker


@click.group("workers", cls=Group)
def command() -> None:
    """Look at the workers that are there, and end them.

    Each command takes --json.
    """


@command.command("list", cls=Command)
@database_option
@json_option
@click.pass_obj
def list_workers(terminal: Terminal, database: str | None, as_json: bool) -> None:
    """List the workers that are there, and what they serve."""
    with opened(database) as operations:
        workers = operations.workers()
        now = operations.persistence.now()
    if as_json:
        terminal.json({"version": 1, "workers": [_json(worker) for worker in workers]})
        return
    rows = [
        (
            worker.id,
            worker.state.value,
            str(worker.slots),
            ",".join(worker.lists),
            age(worker.started_at, now),
            ",".join(name for name in worker.handlers if not name.startswith("afl:")),
        )
        for worker in workers
    ]
    terminal.data(table(("worker", "state", "slots", "lists", "up", "serves"), rows))
    if not workers:
        terminal.say("there is no worker")
        terminal.help("`afl worker --handlers MODULE` starts one")


@command.command("drain", cls=Command)
@click.argument("workers", metavar="WORKER...", nargs=-1, required=True)
@click.option("--dry-run", is_flag=True, help="Only list what would be done.")
@database_option
@json_option
@click.pass_context
def drain(
    ctx: click.Context,
    workers: tuple[str, ...],
    dry_run: bool,
    database: str | None,
    as_json: bool,
) -> None:
    """Have workers finish what they do, and end.

    They claim nothing more from now on. They hear of it when they next renew their leases.
    """
    with opened(database) as operations:
        items = [Change(worker, "running") for worker in workers]

        def act(worker: str) -> Change:
            return Change(worker, operations.drain(worker).state.value)

        changes = each(items, act, dry_run=dry_run)
    report(
        ctx,
        changes,
        done="drained",
        what="worker",
        then="`afl workers list` shows who is left",
        dry_run=dry_run,
        as_json=as_json,
    )


def _json(worker: Worker) -> dict[str, object]:
    return {
        "id": worker.id,
        "name": worker.name,
        "group": worker.group,
        "service": worker.service,
        "state": worker.state.value,
        "lists": list(worker.lists),
        "handlers": list(worker.handlers),
        "slots": worker.slots,
        "started_at": worker.started_at.isoformat(),
        "seen_at": worker.seen_at.isoformat(),
        "expires_at": worker.expires_at.isoformat(),
    }
