"""Commands that are loaded when they are called, and the one place where all of them end."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any, ClassVar, NoReturn

import click

from afl.base.settings import ColorMode
from afl.cli import exit_codes
from afl.cli.errors import ReaderGoneError
from afl.cli.failures import report_failure
from afl.cli.terminal import Terminal, prepare_streams


@dataclass(frozen=True, slots=True)
class Entry:
    """A command that is not loaded yet: where its `command` is, and what it is for in one line."""

    module: str
    help: str


def _set_color(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.ensure_object(Terminal).color = ColorMode(value)


def _set_debug(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(Terminal).debug = True


GLOBAL_OPTIONS = (
    click.Option(
        ["--color"],
        type=click.Choice([mode.value for mode in ColorMode]),
        expose_value=False,
        callback=_set_color,
        help="Colour the output: auto (the default) does on a terminal.",
    ),
    click.Option(
        ["--debug"],
        is_flag=True,
        expose_value=False,
        callback=_set_debug,
        help="Show where in AgentFlow an error was raised.",
    ),
)
"""What every command takes, before its name or after it."""


class Command(click.Command):
    """A command with the global options."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own parameters, then the global ones."""
        return [*super().get_params(ctx), *GLOBAL_OPTIONS]


class LazyGroup(click.Group):
    """A group that knows its commands by their entries, and imports only the one that is called."""

    entries: ClassVar[Mapping[str, Entry]] = {}

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own parameters, then the global ones."""
        return [*super().get_params(ctx), *GLOBAL_OPTIONS]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order of the table, which is the order in which people need them."""
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in self.entries:
            return None
        command = import_module(self.entries[cmd_name].module).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called; for one that does not exist, name the nearest."""
        name = args[0]
        if name not in self.entries and not name.startswith("-"):
            close = get_close_matches(name, self.entries, n=1)
            hint = f" Did you mean `{ctx.command_path} {close[0]}`?" if close else ""
            raise click.UsageError(f"There is no command '{name}'.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.entries.items()])

    def invoke(self, ctx: click.Context) -> object:
        """Run the command, and see to it that all of its output has left the process."""
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()
        except BrokenPipeError as error:
            raise ReaderGoneError from error

    def main(self, args: Sequence[str] | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]  # noqa: ANN401
        """Run a command line and end the process with its exit code."""
        prepare_streams()
        terminal = Terminal()
        extra.update(standalone_mode=False, obj=terminal)
        try:
            status = super().main(args, **extra)
        except Exception as error:  # noqa: BLE001 - the last chance to answer in words
            status = report_failure(error, terminal)
        sys.exit(status if isinstance(status, int) else exit_codes.OK)
