"""`afl agents registry`: the agents that have made themselves known."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from afl.app.extras import mail_part
from afl.base.settings import Settings
from afl.cli.errors import RequestError
from afl.cli.framework import Command
from afl.cli.running.connection import refusals
from afl.cli.running.options import json_option
from afl.cli.running.tables import age, table
from afl.cli.terminal import Terminal
from afl.kernel.model import Json


@click.command("registry", cls=Command)
@click.option("--type", "kind", metavar="TYPE", help="Only agents of this type.")
@click.option("--capability", metavar="NAME", help="Only agents that can do this.")
@click.option(
    "--versions",
    metavar="RANGE",
    help="Of --capability: in a version such as >=1.2,<2 or ^1.2.  [default: any]",
)
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Of --capability: with this tag.")
@click.option("--alive", is_flag=True, help="Leave out those that are dead.")
@json_option
@click.pass_obj
def registry(
    terminal: Terminal,
    kind: str | None,
    capability: str | None,
    versions: str | None,
    tags: tuple[str, ...],
    alive: bool,
    as_json: bool,
) -> None:
    """List the agents that have registered themselves in Redis.

    Those that died lately are listed as dead.
    """
    if capability is None and (versions is not None or tags):
        raise RequestError("--versions and --tag say which --capability: name one")
    found = [
        each
        for each in _found(capability, versions, tags)
        if kind in (None, each["agent_id"]["type"]) and (each["alive"] or not alive)
    ]
    if as_json:
        terminal.json({"version": 1, "agents": [_json(each) for each in found]})
        return
    now = datetime.now(UTC)
    rows = [
        (
            _address(each),
            each["name"],
            "alive" if each["alive"] else "dead",
            each["status"],
            age(_seen(each), now),
            ", ".join(f"{can['name']} {can['version']}" for can in each["capabilities"]),
        )
        for each in found
    ]
    terminal.data(table(("agent", "name", "life", "status", "seen", "capabilities"), rows))
    if not found:
        terminal.say("no such agent has registered itself")
        return
    terminal.help(f"`afl mail send {rows[0][0]} -i NAME=VALUE` sends one a message")


def _found(
    capability: str | None, versions: str | None, tags: Sequence[str]
) -> list[dict[str, Any]]:
    mail_part("afl.app.mailing")
    from afl.app.mailing import registry as registered

    async def ask() -> list[dict[str, Any]]:
        async with registered(Settings.load()) as agents:
            if capability is None:
                return await agents.list_registered()
            return await agents.find(capability, versions or "*", tags=tuple(tags), alive=False)

    with refusals():
        try:
            return asyncio.run(ask())
        except ValueError as error:
            # a range that is none; the message says how to write one
            raise RequestError(str(error)) from error


def _address(agent: Mapping[str, Any]) -> str:
    parts = agent["agent_id"]
    return f"{parts['type']}:{parts['instance'] or 'default'}"


def _seen(agent: Mapping[str, Any]) -> datetime:
    return datetime.fromtimestamp(agent["last_heartbeat"], UTC)


def _json(agent: Mapping[str, Any]) -> dict[str, Json]:
    return {
        "agent": _address(agent),
        "type": agent["agent_id"]["type"],
        "instance": agent["agent_id"]["instance"],
        "name": agent["name"],
        "status": agent["status"],
        "alive": agent["alive"],
        "last_seen": _seen(agent).isoformat(),
        "capabilities": agent["capabilities"],
        "metadata": agent["metadata"],
    }
