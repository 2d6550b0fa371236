"""Groups of commands under a noun: `afl runs list`."""

from __future__ import annotations

import click

from afl.cli.framework import Command
from afl.lang.diagnostics.suggest import nearest


class Group(Command, click.Group):
    """A group with the global options, in the order in which its commands were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order in which people need them."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called; for one that does not exist, name the nearest."""
        name = args[0]
        if name not in self.commands and not name.startswith("-"):
            guess = nearest(name, list(self.commands))
            hint = f" Did you mean `{ctx.command_path} {guess}`?" if guess else ""
            raise click.UsageError(f"There is no command '{name}'.{hint}", ctx)
        return super().resolve_command(ctx, args)
