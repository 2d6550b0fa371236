"""`afl mcp`: tools of MCP servers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from afl.app.extras import agents_part
from afl.base.settings import Settings, environment
from afl.bridges.turn_stores import turn_store
from afl.cli import exit_codes
from afl.cli.errors import RequestError
from afl.cli.framework import Command
from afl.cli.running.connection import connected
from afl.cli.running.groups import Group
from afl.cli.running.options import database_option, json_option
from afl.cli.running.tables import table
from afl.cli.running.texts import shortened
from afl.cli.terminal import Terminal
from afl.turns.mcp.config import read_servers

if TYPE_CHECKING:
    from afl.app.mcp_pins import McpShelf, OfferedTool

_LONGEST = 70


@click.group("mcp", cls=Group)
def command() -> None:
    """Look at the tools of MCP servers, and agree to them.

    Each command takes --json.
    """


@command.command("tools", cls=Command)
@click.argument("server", metavar="[SERVER]", required=False)
@click.option(
    "--trust",
    "trusted",
    metavar="SERVER/TOOL",
    multiple=True,
    help="Agree to a tool as its server describes it now; may be given several times.",
)
@click.option(
    "--config",
    metavar="FILE",
    help="The TOML file that names the servers; else the setting AFL_MCP.",
)
@database_option
@json_option
@click.pass_context
def tools(
    ctx: click.Context,
    server: str | None,
    trusted: tuple[str, ...],
    config: str | None,
    database: str | None,
    as_json: bool,
) -> None:
    """List the tools that MCP servers offer, and whether they are what was agreed to.

    A tool that has changed is not used until somebody has looked at it and trusts it again. One
    that is new is trusted at its first use.
    """
    terminal = ctx.ensure_object(Terminal)
    for target in trusted:
        if "/" not in target:
            raise RequestError(f"'{target}' names no tool; write it as SERVER/TOOL")
    with _shelf(config, database) as shelf:
        if trusted:
            found = [shelf.trust(target) for target in trusted]
            problems: dict[str, str] = {}
        else:
            offers = shelf.tools(server)
            found, problems = list(offers.tools), dict(offers.problems)
    if as_json:
        listed = [_json(tool) for tool in found]
        terminal.json({"version": 1, "tools": listed, "problems": problems})
    else:
        rows = [
            (tool.target, tool.effect, tool.pin, shortened(tool.description, _LONGEST))
            for tool in found
        ]
        terminal.data(table(("tool", "effect", "pin", "description"), rows))
        _say(terminal, found, problems)
    if problems:
        ctx.exit(exit_codes.FAILED)


@contextmanager
def _shelf(config: str | None, database: str | None) -> Iterator[McpShelf]:
    file = config or Settings.load().mcp_file
    if file is None:
        raise RequestError(
            "there is no MCP server: use --config or AFL_MCP",
            help="it is a TOML file with a table [mcp.NAME] for each server",
        )
    servers = read_servers(Path(file))
    with connected(database) as services:
        part = agents_part("afl.app.mcp_pins")
        store = turn_store(services.persistence)
        yield cast("McpShelf", part.McpShelf(servers, store, environment()))


def _say(terminal: Terminal, found: list[OfferedTool], problems: dict[str, str]) -> None:
    for message in problems.values():
        terminal.error(message)
    changed = [tool for tool in found if tool.pin == "changed"]
    if changed:
        terminal.help(f"`afl mcp tools --trust {changed[0].target}` agrees to what it is now")
    elif found:
        terminal.help(f"`afl agents set NAME --tool {found[0].target}` gives it to an agent")


def _json(tool: OfferedTool) -> dict[str, object]:
    return {
        "server": tool.server,
        "name": tool.name,
        "description": tool.description,
        "effect": tool.effect,
        "pin": tool.pin,
        "hash": tool.hash,
    }
