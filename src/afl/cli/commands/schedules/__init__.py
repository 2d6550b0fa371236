"""`afl schedules`: what starts runs at its times.

`reading` shows schedules, `making` creates them, `changing` does the rest.
"""

from __future__ import annotations

import click

from afl.cli.commands.schedules.changing import backfill, delete, pause, resume, trigger
from afl.cli.commands.schedules.making import create
from afl.cli.commands.schedules.reading import list_schedules, next_times, show
from afl.cli.running.groups import Group


@click.group("schedules", cls=Group)
def command() -> None:
    """Start runs at their times.

    Workers fire what is due. Each command takes --json.
    """


for _each in (
    create,
    list_schedules,
    show,
    next_times,
    pause,
    resume,
    trigger,
    backfill,
    delete,
):
    command.add_command(_each)
