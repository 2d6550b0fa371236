"""`afl version`."""

from __future__ import annotations

import platform

import click

from afl import __version__
from afl.cli.framework import Command
from afl.cli.terminal import Terminal
from afl.ir.model import FORMAT_VERSION

#: The version of the language that this compiler reads; see docs/reference/grammar.ebnf.
LANGUAGE_VERSION = "1.0"


@click.command("version", cls=Command)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.pass_obj
def command(terminal: Terminal, as_json: bool) -> None:
    """Show the versions of AgentFlow and its parts."""
    if as_json:
        terminal.json(
            {
                "version": 1,
                "afl": __version__,
                "language": LANGUAGE_VERSION,
                "program_format": FORMAT_VERSION,
                "python": platform.python_version(),
                "platform": platform.platform(),
            }
        )
        return
    terminal.data(
        f"afl             {__version__}\n"
        f"language        {LANGUAGE_VERSION}\n"
        f"program format  {FORMAT_VERSION}\n"
        f"python          {platform.python_version()}\n"
        f"platform        {platform.platform()}\n"
    )
