"""`afl dev`."""

from __future__ import annotations

import click

from afl.cli.errors import CommandError, RequestError
from afl.cli.framework import Command
from afl.cli.running.connection import database_url
from afl.cli.terminal import Terminal

_PORT = 7400


@click.command("dev", cls=Command)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_PORT,
    show_default=True,
    metavar="N",
    help="Where the page is; 0 for any that is free.",
)
@click.option(
    "--database",
    metavar="URL",
    help="Keep everything in this database, such as postgresql://host/name or mongodb://host/name, "
    "and bring its schema up to date.  [default: a PostgreSQL of the project's own, in .afl]",
)
@click.option("--memory", is_flag=True, help="Keep everything in this process, until it ends.")
@click.option("--no-browser", is_flag=True, help="Open no page in the browser.")
@click.option("--no-demo", is_flag=True, help="Start no run when nothing has ever been run.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each thing to tell.")
@click.pass_obj
def command(
    terminal: Terminal,
    port: int,
    database: str | None,
    memory: bool,
    no_browser: bool,
    no_demo: bool,
    as_json: bool,
) -> None:
    """Run a project on this machine, with all that it needs.

    The project is the current folder: flows in `flows`, pipelines in `pipelines`, handlers in
    handlers.py or app.py. One process has the database, a worker that runs commands too, and the
    page; only this machine can reach it. When a file is saved, what compiles is deployed and
    handlers are loaded anew; runs that have begun keep their program.
    """
    if memory and database is not None:
        raise RequestError("use --database or --memory, not both")
    wanted = None if database is None else database_url(database)
    try:
        from afl.cli.dev.running import Wish, run
    except ModuleNotFoundError as error:
        raise CommandError(
            f"`afl dev` needs {error.name}, which is not installed",
            help="install it with `pip install 'afl-agentflow[all]'`",
        ) from error
    wish = Wish(port, wanted, memory, browser=not no_browser, demo=not no_demo)
    run(wish, terminal, as_json=as_json)
