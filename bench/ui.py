"""How long the page of a large run takes in a browser: `python -m bench.ui`.

In a database of its own there are runs of 10,000 and of 100,000 steps. Chromium opens each with
nothing in its cache, several times: how long until the first row of steps is there, until the panel
of a step is open, until the last of 100,000 iterations is in sight; and how large the heap is then.
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

from psycopg.conninfo import conninfo_to_dict

from afl.app.migrating import migrate
from afl.app.services import connect
from afl.base.settings import environment
from bench.server import database, parser
from bench.ui_filling import check_copy, copy_run, execute_small

UI = Path(__file__).parents[1] / "ui"
_SECONDS = 600
#: What is measured, in words, and what it should be below; None where there is no aim.
_ROWS = (
    ("first_paint_ms_10k", "10,000 steps: first row, ms", 1500),
    ("panel_ms", "10,000 steps: panel of a step, ms", 300),
    ("heap_mb", "heap after all of it, MB", 200),
    ("open_ms_100k", "100,000 steps: first row, ms", None),
    ("scroll_end_ms_100k", "100,000 steps: last iteration in sight, ms", None),
    ("longest_frame_ms_100k", "100,000 steps: longest frame of a scroll, ms", None),
)


@contextmanager
def _served(url: str) -> Iterator[str]:
    """A server in a process of its own, on a free port; its address."""
    command = ["serve", "--port", "0", "--no-auth", "--database", url]
    with subprocess.Popen(
        [sys.executable, "-m", "afl", *command], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            yield line[line.index("http") :].split()[0].rstrip("/")
        finally:
            process.terminate()


def _browse(address: str, runs: dict[str, str], rounds: int) -> dict[str, float]:
    """What the script in `ui/e2e` has measured."""
    node = shutil.which("node") or str(Path(sys.executable).parent / "node")
    ended = subprocess.run(
        [node, "e2e/run-bench.mjs"],
        cwd=UI,
        env={**environment(), "BASE_URL": address, "RUNS": json.dumps(runs), "ROUNDS": str(rounds)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=_SECONDS,
        check=True,
    )
    figures: dict[str, float] = json.loads(ended.stdout.strip().splitlines()[-1])
    return figures


def report(figures: dict[str, float]) -> str:
    """A table, and the figures as one JSON object in the last line."""
    rows = [f"{'':<46}{'median':>10}{'aim':>10}"]
    for name, words, aim in _ROWS:
        below = "" if aim is None else f"< {aim}"
        rows.append(f"{words:<46}{figures[name]:>10.1f}{below:>10}")
    told = {**figures, "load": round(os.getloadavg()[0], 1)}
    return "\n".join([*rows, json.dumps(told)])


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=5, help="pages that are opened (5)")
    given = options.parse_args()
    with database(given.server) as conninfo:
        migrate(conninfo)
        parts = conninfo_to_dict(conninfo)
        url = f"postgresql://{parts['host']}/{parts['dbname']}"
        with connect(url) as services:
            template = execute_small(services)
        check_copy(conninfo, template)
        runs = {"10k": copy_run(conninfo, template, 10_000)}
        runs["100k"] = copy_run(conninfo, template, 100_000)
        with _served(url) as address:
            figures = _browse(address, runs, given.rounds)
    sys.stdout.write(report(figures) + "\n")


if __name__ == "__main__":
    main()
