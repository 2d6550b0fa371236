"""A server in a process of its own, which a test may kill: says its address in one line."""

from __future__ import annotations

import sys

from afl.base.settings import Settings
from afl.server.application import create_app
from afl.server.serving import open_backend, run_server


def main(database: str) -> None:
    with open_backend(database, Settings(), auth=False) as backend:
        run_server(create_app(backend), "127.0.0.1", 0, on_started=_say)


def _say(url: str) -> None:
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
