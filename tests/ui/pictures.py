"""Takes the pictures of the documentation anew, of a dashboard with runs of every kind.

    python -m tests.ui.pictures [folder]

needs PostgreSQL, Chromium and the built dashboard. With LOOK=1 every page is taken, at two widths,
light and dark, for those who want to look at all of them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from psycopg.conninfo import conninfo_to_dict

from afl import App, Client
from afl.app.migrating import migrate
from afl.kernel.model import Json
from afl.server.files import STATIC
from tests.kernel.postgres.databases import migrated_database
from tests.ui.browsing import node
from tests.ui.png import quantise
from tests.ui.run_scene import Scene, open_scene
from tests.ui.seed import seeded

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
HELLO = ROOT / "src" / "afl" / "templates" / "hello" / "flows"
CUSTOMERS = 240


@contextmanager
def _stage() -> Iterator[Scene]:
    """A shop with runs in every state, and books that are closed beside it."""
    with migrated_database() as conninfo:
        migrate(conninfo)
        parts = conninfo_to_dict(conninfo)
        database = f"postgresql://{parts['host']}/{parts['dbname']}"
        # a dashboard that is built meanwhile must not be seen half made
        with TemporaryDirectory() as folder, seeded(database), Client(database) as client:
            static = Path(shutil.copytree(STATIC, Path(folder, "static")))
            with open_scene(database, static) as scene:
                yield Scene(scene.url, {**scene.runs, **_more(client), **_hello(database)})


def _more(client: Client) -> dict[str, str]:
    """A large run, and what starts runs by itself."""
    month: dict[str, Json] = {"month": "2026-10", "customers": CUSTOMERS}
    large = client.submit("billing.MonthlyClose", month, labels={"env": "prod"})
    labels = {"team": "books"}
    inputs: dict[str, Json] = {"month": "2026-11"}
    berlin, close = "Europe/Berlin", "billing.MonthlyClose"
    client.schedules.create("close", close, inputs, cron="0 6 1 * *", zone=berlin, labels=labels)
    client.schedules.create("daily-report", "billing.Report", inputs, every="6h", overlap="queue")
    client.schedules.trigger("daily-report").result("60s")
    client.schedules.pause("daily-report")
    large.wait("120s")
    return {"large": large.id}


def _hello(database: str) -> dict[str, str]:
    """The first run of a new project."""
    app = App("hello", database, program="hello")

    @app.handler("hello.Greet")
    def greet(name: str) -> str:
        return f"Hello, {name}!"

    @app.handler("hello.Count")
    def count(text: str) -> int:
        return sum(character.isalpha() for character in text)

    try:
        with app.client() as client:
            client.deploy(HELLO, name="hello")
            with app.worker():
                run = client.submit("hello.SayHello", program="hello")
                run.result("60s")
                return {"hello": run.id}
    finally:
        app.close()


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    with _stage() as scene:
        subprocess.run(
            [node(), "e2e/pictures.mjs"],
            cwd=ROOT / "ui",
            env={
                **os.environ,
                "BASE_URL": scene.url,
                "RUNS": json.dumps(scene.runs),
                "SHOTS": str(folder.resolve()),
            },
            check=True,
        )
    for picture in sorted(folder.glob("*.png")):
        if not os.environ.get("LOOK"):
            quantise(picture)
        sys.stdout.write(f"{picture.name}  {picture.stat().st_size // 1000} kB\n")


if __name__ == "__main__":
    main()
