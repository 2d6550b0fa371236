"""`afl emit`."""

from __future__ import annotations

import click

from afl.cli.framework import Command
from afl.cli.running.connection import opened
from afl.cli.running.options import database_option, json_option, json_value
from afl.cli.terminal import Terminal
from afl.kernel.model import Json


@click.command("emit", cls=Command)
@click.argument("name")
@click.option("--key", default="", metavar="KEY", help="Of several that wait, the one with this.")
@click.option("--payload", type=json_value, metavar="JSON", help="What whoever waits is given.")
@click.option(
    "--id", "event_id", metavar="ID", help="The same event under the same id counts once."
)
@database_option
@json_option
@click.pass_obj
def command(
    terminal: Terminal,
    name: str,
    key: str,
    payload: Json,
    event_id: str | None,
    database: str | None,
    as_json: bool,
) -> None:
    """Give an event to a run that waits for it.

    The first step that waits, or will wait, for NAME and the key takes it: see afl.event.Wait.
    """
    with opened(database, rings=True) as operations:
        is_new = operations.emit(name, key, payload, id=event_id)
    if as_json:
        terminal.json({"version": 1, "name": name, "key": key, "id": event_id, "is_new": is_new})
    elif is_new:
        terminal.say(f"emitted `{name}`")
        terminal.help("`afl runs list --state running` shows the runs that may go on now")
    else:
        terminal.say(f"nothing to do: the event {event_id} was emitted before")
