"""`afl agents`: the roster, turns, and the registry.

`roster` says who they are, `turns` what they do, `registry` who has made itself known elsewhere.
"""

from __future__ import annotations

import click

from afl.cli.commands.agents.registry import registry
from afl.cli.commands.agents.roster import delete, get, list_agents, set_agent
from afl.cli.commands.agents.turns import send, stop, turns
from afl.cli.running.groups import Group


@click.group("agents", cls=Group)
def command() -> None:
    """Look after agents, and give them turns.

    Each command takes --json.
    """


for _each in (list_agents, get, set_agent, delete, turns, send, stop, registry):
    command.add_command(_each)
