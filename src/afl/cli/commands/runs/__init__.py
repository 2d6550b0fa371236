"""`afl runs`: everything that is done to runs.

`reading`, `logs` and `transcript` show them, `changing` stops, pauses and resumes them, `again`
makes new ones of them.
"""

from __future__ import annotations

import click

from afl.cli.commands.runs.again import fork, rerun, retry
from afl.cli.commands.runs.changing import cancel, pause, resume
from afl.cli.commands.runs.logs import logs
from afl.cli.commands.runs.reading import export, get, list_runs, result, tree, watch, why
from afl.cli.commands.runs.transcript import transcript
from afl.cli.running.groups import Group


@click.group("runs", cls=Group)
def command() -> None:
    """Look at runs and look after them.

    Each command takes --json.
    """


for _each in (
    list_runs,
    get,
    tree,
    watch,
    result,
    why,
    logs,
    transcript,
    cancel,
    pause,
    resume,
    retry,
    fork,
    rerun,
    export,
):
    command.add_command(_each)
