"""A worker as a process of its own, for tests of breakers: `breaker_worker DATABASE LIST FOLDER`.

Its handlers fail while the file `broken` is in the folder, and note each call in `calls.LIST`. It
tells that it is there, and ends with its standard input.
"""

from __future__ import annotations

import sys
from pathlib import Path

from afl import App


def main(database: str, task_list: str, folder: str) -> None:
    app = app_of(database, Path(folder), task_list)
    with app.worker(queues=(task_list,), flows=False):
        print("there", flush=True)
        sys.stdin.read()
    app.close()


def app_of(database: str, folder: Path, task_list: str) -> App:
    """Handlers that are as well as the folder says."""
    app = App(f"app-{task_list}", database)

    def work(n: int) -> int:
        is_broken = (folder / "broken").exists()
        with (folder / f"calls.{task_list}").open("a") as calls:
            calls.write("bad\n" if is_broken else "good\n")
        if is_broken:
            raise ConnectionError("the service is down")
        return n + 1

    for facet in ("Try", "Charge"):
        app.handler(f"demo.{facet}{task_list.upper()}")(work)
    return app


if __name__ == "__main__":
    main(*sys.argv[1:])
