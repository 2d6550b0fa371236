"""The entry: the table of commands, and what they have in common.

Nothing here may load a command, the language or rich: `afl --help` has to be there at once.
"""

from __future__ import annotations

from typing import NoReturn

import click

from afl import __version__
from afl.base.settings import ColorMode, Settings
from afl.cli.framework import Entry, LazyGroup
from afl.cli.terminal import Terminal

_COMMANDS = "afl.cli.commands"

ENTRIES = {
    "init": Entry(f"{_COMMANDS}.init", "Write a small project to begin with."),
    "dev": Entry(f"{_COMMANDS}.dev", "Run a project on this machine, with all that it needs."),
    "check": Entry(f"{_COMMANDS}.check", "Find mistakes in AFL sources."),
    "fmt": Entry(f"{_COMMANDS}.fmt", "Lay out AFL sources in the one style."),
    "compile": Entry(f"{_COMMANDS}.compile", "Turn AFL sources into a program."),
    "graph": Entry(f"{_COMMANDS}.graph", "Draw the steps of a workflow."),
    "doc": Entry(f"{_COMMANDS}.doc", "Write a catalogue of what AFL sources declare."),
    "explain": Entry(f"{_COMMANDS}.explain", "Explain a diagnostic code."),
    "run": Entry(f"{_COMMANDS}.run", "Run a workflow here and now, without a database."),
    "deploy": Entry(f"{_COMMANDS}.deploy", "Make AFL sources the program that new runs use."),
    "submit": Entry(f"{_COMMANDS}.submit", "Start a run of a deployed workflow."),
    "worker": Entry(f"{_COMMANDS}.worker", "Serve facets and advance runs until told to stop."),
    "serve": Entry(
        f"{_COMMANDS}.serve", "Serve the dashboard and the HTTP API until told to stop."
    ),
    "tokens": Entry(
        f"{_COMMANDS}.tokens", "Make and revoke the tokens with which the server is used."
    ),
    "emit": Entry(f"{_COMMANDS}.emit", "Give an event to a run that waits for it."),
    "schedules": Entry(f"{_COMMANDS}.schedules", "Start runs at their times."),
    "hooks": Entry(f"{_COMMANDS}.hooks", "Let other systems start runs by signed web hooks."),
    "runs": Entry(f"{_COMMANDS}.runs", "Look at runs and look after them."),
    "inbox": Entry(f"{_COMMANDS}.inbox", "Answer what waits for people."),
    "agents": Entry(f"{_COMMANDS}.agents", "Look after agents, and give them turns."),
    "mail": Entry(f"{_COMMANDS}.mail", "Send messages to agents, and look after their mailboxes."),
    "cost": Entry(f"{_COMMANDS}.cost", "Show what models have cost, and set what may be spent."),
    "mcp": Entry(f"{_COMMANDS}.mcp", "Look at the tools of MCP servers, and agree to them."),
    "tasks": Entry(f"{_COMMANDS}.tasks", "Look at the tasks that runs are made of."),
    "dlq": Entry(f"{_COMMANDS}.dlq", "Look at the dead letters: tasks that were given up."),
    "breakers": Entry(
        f"{_COMMANDS}.breakers", "Look at the circuit breakers that processes share."
    ),
    "workers": Entry(f"{_COMMANDS}.workers", "Look at the workers that are there, and end them."),
    "doctor": Entry(f"{_COMMANDS}.doctor", "Check what AgentFlow needs, and say what to do."),
    "db": Entry(f"{_COMMANDS}.db", "Look after the database of AgentFlow."),
    "version": Entry(f"{_COMMANDS}.version", "Show the versions of AgentFlow and its parts."),
}


class _Afl(LazyGroup):
    entries = ENTRIES


@click.group(
    cls=_Afl,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`afl COMMAND --help` shows the options of a command.",
)
@click.version_option(__version__, prog_name="afl", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Durable flows of steps, written in AFL."""
    # Loaded here and not before: a wrong setting must not keep `--help` from answering.
    settings = Settings.load()
    terminal = ctx.ensure_object(Terminal)
    if terminal.color is ColorMode.AUTO and not _given(ctx, "color"):
        terminal.color = settings.color
    terminal.debug = terminal.debug or settings.debug


def _given(ctx: click.Context, option: str) -> bool:
    source = ctx.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def main() -> NoReturn:
    """Run the command line of this process."""
    cli.main(prog_name="afl")


if __name__ == "__main__":
    main()
