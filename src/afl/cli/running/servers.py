"""Commands that a server cannot do in place of its database."""

from __future__ import annotations

from afl.app.remote.addresses import is_server
from afl.cli.errors import RequestError


def refuse_server(url: str) -> None:
    """Refuses the URL of a server, for commands that need the database itself."""
    if is_server(url):
        raise RequestError(
            "this command needs the database itself, and AFL_DATABASE_URL or --database names a "
            "server",
            help="give the URL of the server's database: --database postgresql://host/name",
        )
