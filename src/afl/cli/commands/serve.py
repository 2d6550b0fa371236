"""`afl serve`."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import click

from afl.app.extras import extra_part
from afl.base.settings import LogFormat, Settings
from afl.cli.framework import Command
from afl.cli.running.connection import database_url, refusals, refuse_pending
from afl.cli.running.logs import process_logs
from afl.cli.running.options import database_option, json_option
from afl.cli.terminal import Terminal

PORT = 7400


@click.command("serve", cls=Command)
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where to listen."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    metavar="N",
    help="The port; 0 takes any that is free.",
)
@click.option(
    "--no-auth",
    is_flag=True,
    help="Ask nobody who they are; everybody may do everything. For this machine alone.",
)
@database_option
@json_option
@click.pass_obj
def command(
    terminal: Terminal, host: str, port: int, no_auth: bool, database: str | None, as_json: bool
) -> None:
    """Serve the dashboard and the HTTP API until told to stop.

    Whoever signs in needs a token: `afl tokens create NAME --role ROLE` makes one. Ctrl-C and
    SIGTERM end it when the requests that are under way are answered.
    """
    url = database_url(database)
    settings = replace(Settings.load(), database_url=url)
    # whoever reads lines as JSON is not to find others between them
    as_json = as_json or settings.log_format is LogFormat.JSON
    with refusals(), process_logs("serve", settings):
        refuse_pending(url)
        serving = extra_part("afl.server.serving", "server", "`afl serve` needs")
        create_app = extra_part("afl.server.application", "server", "`afl serve` needs").create_app
        with serving.open_backend(url, settings, auth=not no_auth) as backend:
            serving.refuse_open_doors(host, backend)
            serving.warn_of_missing_wall(backend)
            if not as_json and backend.auth and serving.lacks_callers(backend):
                terminal.say("there is no token yet, so nobody can sign in")
                terminal.help("`afl tokens create admin --role admin` makes one")
            teller = _Teller(terminal, as_json)
            serving.run_server(create_app(backend), host, port, on_started=teller.started)
            teller.stopped()


@dataclass(frozen=True, slots=True)
class _Teller:
    """Says where the server is; with --json in objects, each on a line of its own."""

    terminal: Terminal
    as_json: bool

    def started(self, url: str) -> None:
        if self.as_json:
            self._tell({"event": "started", "url": url})
        else:
            self.terminal.data_now(f"AgentFlow is at {url}\n")

    def stopped(self) -> None:
        if self.as_json:
            self._tell({"event": "stopped"})

    def _tell(self, values: dict[str, str]) -> None:
        self.terminal.data_now(json.dumps({"version": 1, **values}) + "\n")
