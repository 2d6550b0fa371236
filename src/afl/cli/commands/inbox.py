"""`afl inbox`: what waits for people."""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping

import click

from afl.cli.errors import RequestError
from afl.cli.framework import Command
from afl.cli.running.bulk import Change
from afl.cli.running.connection import opened
from afl.cli.running.groups import Group
from afl.cli.running.options import database_option, json_option, limit_option, pair
from afl.cli.running.tables import age, local, short, table
from afl.cli.running.workflows import read_object
from afl.cli.terminal import Terminal
from afl.kernel.model import Json
from afl.runtime.inbox import InboxItem

by_option = click.option(
    "--by", metavar="NAME", help="Who answers.  [default: the user that runs the command]"
)


@click.group("inbox", cls=Group)
def command() -> None:
    """Answer what waits for people.

    Each command takes --json.
    """


@command.command("list", cls=Command)
@click.option("--group", metavar="GROUP", help="Only what this group is asked for.")
@click.option("--after", metavar="TASK", help="Only from after this one: the next page.")
@limit_option
@database_option
@json_option
@click.pass_obj
def list_items(
    terminal: Terminal,
    group: str | None,
    after: str | None,
    limit: int,
    database: str | None,
    as_json: bool,
) -> None:
    """List what waits for an answer, the oldest first."""
    with opened(database) as operations:
        found = operations.inbox.list(group, after=after, limit=limit + 1)
        now = operations.persistence.now()
    items = found[:limit]
    following = items[-1].task if len(found) > limit else None
    if as_json:
        listed = [item.as_json() for item in items]
        terminal.json({"version": 1, "items": listed, "next": following})
        return
    rows = [
        (
            item.task,
            item.group,
            item.title,
            item.run,
            item.step or "",
            age(item.since, now),
            "" if item.deadline is None else short(item.deadline - now),
        )
        for item in items
    ]
    terminal.data(table(("task", "group", "title", "run", "step", "age", "left"), rows))
    if not items:
        terminal.say("nothing waits for a person")
        return
    if following is not None:
        terminal.help(f"there are more; `--after {following}` shows the next page")
    terminal.help(f"`afl inbox show {items[0].task}` shows what is asked, and what to answer")


@command.command("show", cls=Command)
@click.argument("task", metavar="TASK")
@database_option
@json_option
@click.pass_obj
def show(terminal: Terminal, task: str, database: str | None, as_json: bool) -> None:
    """Show what is asked, and the form of the answer."""
    with opened(database) as operations:
        item = operations.inbox.get(task)
    if as_json:
        terminal.json({"version": 1, "items": [item.as_json()], "next": None})
        return
    lines = [
        ("title", item.title),
        ("facet", item.facet),
        ("group", item.group),
        ("run", item.run),
        ("step", item.step or ""),
        ("since", local(item.since)),
        ("deadline", local(item.deadline)),
        ("then", item.at_deadline or ""),
    ]
    for name, value in lines:
        if value:
            terminal.data(f"{name:<10}{value}\n")
    for name, given in item.params.items():
        terminal.data(f"  {name} = {_shown(given)}\n")
    terminal.data("answer\n")
    for name, field in _fields(item).items():
        terminal.data(f"  {name}: {_asked(item, name, field)}\n")
    needed = "".join(f" -i {name}=..." for name in _required(item))
    terminal.help(f"`afl inbox answer {item.task}{needed}` answers it")
    terminal.help(f"`afl inbox reject {item.task} --reason TEXT` refuses it")


@command.command("answer", cls=Command)
@click.argument("task", metavar="TASK")
@click.option(
    "-i",
    "--input",
    "pairs",
    type=pair,
    metavar="NAME=VALUE",
    multiple=True,
    help="One field; a String as it is, any other type as JSON.",
)
@click.option(
    "--inputs",
    "inputs_file",
    metavar="FILE",
    help="A JSON object with fields, or - for standard input; --input wins over it.",
)
@by_option
@database_option
@json_option
@click.pass_obj
def answer(
    terminal: Terminal,
    task: str,
    pairs: tuple[tuple[str, str], ...],
    inputs_file: str | None,
    by: str | None,
    database: str | None,
    as_json: bool,
) -> None:
    """Answer what a person was asked.

    The first answer counts: the run goes on with it.
    """
    with opened(database, rings=True) as operations:
        item = operations.inbox.get(task)
        values = {} if inputs_file is None else dict(read_object(inputs_file))
        values |= {name: _value(item, name, text) for name, text in pairs}
        operations.inbox.answer(task, values, by=by or getpass.getuser())
    _done(terminal, item, "answered", as_json=as_json)


@command.command("reject", cls=Command)
@click.argument("task", metavar="TASK")
@click.option("--reason", default="", metavar="TEXT", help="Why; the flow reads it.")
@by_option
@database_option
@json_option
@click.pass_obj
def reject(
    terminal: Terminal,
    task: str,
    reason: str,
    by: str | None,
    database: str | None,
    as_json: bool,
) -> None:
    """Refuse what a person was asked for.

    The step fails with the error type `Rejected` and the reason.
    """
    with opened(database, rings=True) as operations:
        item = operations.inbox.get(task)
        operations.inbox.reject(task, reason, by=by or getpass.getuser())
    _done(terminal, item, "rejected", as_json=as_json)


def _done(terminal: Terminal, item: InboxItem, state: str, *, as_json: bool) -> None:
    if as_json:
        change = Change(item.task, state)
        terminal.json({"version": 1, "dry_run": False, "changes": [change.as_json()]})
        return
    terminal.say(f"{state} {item.title}")
    terminal.help(f"`afl runs watch {item.run}` shows how the run goes on")


def _fields(item: InboxItem) -> Mapping[str, Mapping[str, Json]]:
    fields = item.form.get("properties")
    found = fields if isinstance(fields, dict) else {}
    return {name: field if isinstance(field, dict) else {} for name, field in found.items()}


def _required(item: InboxItem) -> list[str]:
    required = item.form.get("required")
    return [str(name) for name in required] if isinstance(required, list) else []


def _value(item: InboxItem, name: str, text: str) -> Json:
    """What a text on the command line means for a field of the form."""
    field = _fields(item).get(name, {})
    kinds = _kinds(field)
    if kinds == {"string"} or ("string" in kinds and text != "null"):
        return text
    try:
        value: Json = json.loads(text)
    except json.JSONDecodeError as error:
        raise RequestError(
            f"the field `{name}` is {_asked(item, name, field)}, and '{text}' is not JSON: {error}",
            help=f"`afl inbox show {item.task}` shows the form",
        ) from error
    return value


def _kinds(field: Mapping[str, Json]) -> set[str]:
    options = field.get("anyOf")
    if isinstance(options, list):
        return {kind for each in options if isinstance(each, dict) for kind in _kinds(each)}
    kind = field.get("type")
    return {str(each) for each in kind} if isinstance(kind, list) else {str(kind or "any JSON")}


def _asked(item: InboxItem, name: str, field: Mapping[str, Json]) -> str:
    """A field in words: its type, its choices, and whether it may be left out."""
    choices = field.get("enum")
    told = " or ".join(sorted(_kinds(field)))
    if isinstance(choices, list):
        told = " or ".join(str(choice) for choice in choices)
    if "default" in field:
        told += f" (else {_shown(field['default'])})"
    elif name not in _required(item):
        told += " (may be left out)"
    description = field.get("description")
    return f"{told}: {description}" if description else told


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
