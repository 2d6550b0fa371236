"""`afl dlq`: tasks that were given up."""

from __future__ import annotations

import json

import click

from afl.cli.errors import RequestError
from afl.cli.framework import Command
from afl.cli.running.bulk import Change, each, report
from afl.cli.running.connection import opened
from afl.cli.running.groups import Group
from afl.cli.running.options import database_option, json_option, limit_option
from afl.cli.running.tables import age, table
from afl.cli.terminal import Terminal
from afl.kernel.model import Task
from afl.runtime.operations import Operations
from afl.runtime.views import task_json

_PAGE = 500


@click.group("dlq", cls=Group)
def command() -> None:
    """Look at the dead letters: tasks that were given up.

    Each command takes --json.
    """


@command.command("list", cls=Command)
@click.option("--after", metavar="TASK", help="Only tasks from after this one: the next page.")
@limit_option
@database_option
@json_option
@click.pass_obj
def list_letters(
    terminal: Terminal, after: str | None, limit: int, database: str | None, as_json: bool
) -> None:
    """List tasks that were given up and not driven again."""
    with opened(database) as operations:
        found = operations.dead_letters(after=after, limit=limit + 1)
        now = operations.persistence.now()
    tasks = list(found)[:limit]
    following = tasks[-1].id if len(found) > limit else None
    if as_json:
        terminal.json(
            {"version": 1, "tasks": [task_json(task) for task in tasks], "next": following}
        )
        return
    rows = [(task.id, task.name, age(task.closed_at, now), _error(task)) for task in tasks]
    terminal.data(table(("task", "name", "age", "error"), rows))
    if not tasks:
        terminal.say("there are no dead letters")
        return
    if following is not None:
        terminal.help(f"there are more; `--after {following}` shows the next page")
    terminal.help(f"`afl dlq redrive {tasks[0].id}` does the work again")


@command.command("redrive", cls=Command)
@click.argument("tasks", metavar="[TASK]...", nargs=-1)
@click.option("--name", metavar="FACET", help="All of this facet, instead of named ones.")
@click.option("--all", "is_all", is_flag=True, help="All of them, instead of named ones.")
@click.option("--dry-run", is_flag=True, help="Only list what would be done.")
@database_option
@json_option
@click.pass_context
def redrive(
    ctx: click.Context,
    tasks: tuple[str, ...],
    name: str | None,
    is_all: bool,
    dry_run: bool,
    database: str | None,
    as_json: bool,
) -> None:
    """Do the work of dead letters again.

    Their runs have gone on without them, so nobody takes the results. To have a run use them, retry
    the run instead.
    """
    if sum((bool(tasks), name is not None, is_all)) != 1:
        raise RequestError(
            "name the tasks, or use --name or --all", help="`afl dlq list` shows what there is"
        )
    with opened(database, rings=True) as operations:
        items = [Change(task, "dead") for task in tasks or _letters(operations, name)]

        def act(task: str) -> Change:
            made = operations.redrive(task)
            return Change(task, made.state.value, made=made.id)

        changes = each(items, act, dry_run=dry_run)
    report(
        ctx,
        changes,
        done="driven again",
        what="task",
        then="`afl tasks get {}` shows how it fares",
        dry_run=dry_run,
        as_json=as_json,
    )


def _letters(operations: Operations, name: str | None) -> list[str]:
    """The ids of all dead letters, or of those of a facet."""
    found: list[str] = []
    page = operations.dead_letters(limit=_PAGE)
    while page:
        found += [task.id for task in page if name in (None, task.name, task.short_name)]
        page = operations.dead_letters(after=page[-1].id, limit=_PAGE)
    return found


def _error(task: Task) -> str:
    if isinstance(task.error, dict) and "message" in task.error:
        return f"{task.error.get('type', 'Error')}: {task.error['message']}"
    return "" if task.error is None else json.dumps(task.error, ensure_ascii=False)
