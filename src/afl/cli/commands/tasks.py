"""`afl tasks`: what workers do, and what waits for them."""

from __future__ import annotations

import click

from afl.cli.errors import MissingError
from afl.cli.framework import Command
from afl.cli.running.connection import opened
from afl.cli.running.groups import Group
from afl.cli.running.options import database_option, json_option, limit_option
from afl.cli.running.tables import age, table
from afl.cli.terminal import Terminal
from afl.kernel.model import Outcome, State, Task, TaskId
from afl.runtime.views import task_json

_STATES = [each.value for each in State]
_OUTCOMES = [each.value for each in Outcome]


@click.group("tasks", cls=Group)
def command() -> None:
    """Look at the tasks that runs are made of.

    Each command takes --json.
    """


@command.command("list", cls=Command)
@click.option("--run", metavar="RUN", help="Only tasks of this run, and of the runs it called.")
@click.option("--state", type=click.Choice(_STATES), help="Only tasks in this state.")
@click.option("--outcome", type=click.Choice(_OUTCOMES), help="Only tasks that ended like this.")
@click.option("--after", metavar="TASK", help="Only tasks from after this one: the next page.")
@limit_option
@database_option
@json_option
@click.pass_obj
def list_tasks(
    terminal: Terminal,
    run: str | None,
    state: str | None,
    outcome: str | None,
    after: str | None,
    limit: int,
    database: str | None,
    as_json: bool,
) -> None:
    """List tasks, the oldest first."""
    with opened(database) as operations:
        found = operations.tasks(
            run=run,
            state=None if state is None else State(state),
            outcome=None if outcome is None else Outcome(outcome),
            after=after,
            limit=limit + 1,
        )
        now = operations.persistence.now()
    tasks = list(found)[:limit]
    following = tasks[-1].id if len(found) > limit else None
    if as_json:
        terminal.json(
            {"version": 1, "tasks": [task_json(task) for task in tasks], "next": following}
        )
        return
    rows = [
        (task.id, state_of(task), task.name, str(_given(task, "step")), age(task.created_at, now))
        for task in tasks
    ]
    terminal.data(table(("task", "state", "name", "step", "age"), rows))
    if not tasks:
        terminal.say("there is no such task")
    elif following is not None:
        terminal.help(f"there are more; `--after {following}` shows the next page")


@command.command("get", cls=Command)
@click.argument("task", metavar="TASK")
@database_option
@json_option
@click.pass_obj
def get(terminal: Terminal, task: str, database: str | None, as_json: bool) -> None:
    """Show a task as it is stored."""
    with opened(database) as operations:
        found = operations.persistence.kernel.get_task(TaskId(task))
        if found is None:
            raise MissingError(
                f"there is no task {task}", help="`afl tasks list` shows the tasks there are"
            )
        why = operations.why_task(found)
    if as_json:
        terminal.json({"version": 1, "tasks": [task_json(found)], "next": None})
        return
    for name, value in task_json(found).items():
        if value is not None:
            terminal.data(f"{name:<16}{value}\n")
    if found.state is not State.CLOSED:
        terminal.say(why.sentence)
        if why.command is not None:
            terminal.help(f"`{why.command}`")
    run = _given(found, "run") or found.id
    terminal.help(f"`afl runs why {run}` says what its run waits for")


def state_of(task: Task) -> str:
    """A task's state, and of one that has ended its outcome."""
    return task.state.value if task.outcome is None else task.outcome.value


def _given(task: Task, name: str) -> object:
    return task.input.get(name, "") if isinstance(task.input, dict) else ""
