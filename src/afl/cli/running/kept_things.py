"""Lists of what the server keeps under names, and what is told when one of it is gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from afl.cli.running.tables import table
from afl.cli.terminal import Terminal


def show_all(
    terminal: Terminal,
    what: str,
    told: Sequence[Mapping[str, str | None]],
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    none: str,
    help: str,
    as_json: bool,
) -> None:
    """Shows things as a table, or as JSON under the name of what they are.

    Args:
        none: what to say if there are none.
        help: how to make one.
    """
    if as_json:
        terminal.json({"version": 1, what: [dict(each) for each in told]})
        return
    terminal.data(table(header, rows))
    if not told:
        terminal.say(none)
        terminal.help(help)


def say_gone(terminal: Terminal, how: str, name: str, *, help: str, as_json: bool) -> None:
    """Says that one of them was deleted or revoked."""
    if as_json:
        terminal.json({"version": 1, how: name})
        return
    terminal.say(f"{how} {name}")
    terminal.help(help)
