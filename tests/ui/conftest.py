"""A dashboard with data in it, and a browser that looks at it.

A script in `ui/e2e` opens pages and prints what it has checked as JSON; `Dashboard.browse` runs one
and says which of its checks have failed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from afl.server.files import STATIC
from tests.cli.deployed import fresh_database
from tests.kernel.postgres.databases import server_is_there
from tests.ui.browsing import node
from tests.ui.seed import Seeded, seeded

UI = Path(__file__).parents[2] / "ui"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
_SCRIPT_SECONDS = 240


@dataclass(frozen=True)
class Dashboard:
    """A server with data, and where it is."""

    url: str
    database: str
    stage: Seeded
    shots: Path

    def browse(self, script: str, **values: str) -> dict[str, object]:
        """What a script has found; it fails the test with the checks that failed."""
        return browse(script, self.url, self.shots, values)


def browse(
    script: str, url: str, shots: Path, values: dict[str, str] | None = None
) -> dict[str, object]:
    """Runs a script of `ui/e2e` against a server."""
    ended = subprocess.run(
        [node(), f"e2e/{script}.mjs"],
        cwd=UI,
        env={
            **os.environ,
            "BASE_URL": url,
            "CHROMIUM": CHROMIUM,
            "SHOTS": str(shots),
            **{name.upper(): value for name, value in (values or {}).items()},
        },
        capture_output=True,
        text=True,
        timeout=_SCRIPT_SECONDS,
        check=False,
    )
    try:
        report: dict[str, object] = json.loads(ended.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        pytest.fail(f"{script} gave no report: {ended.stdout[-2000:]}\n{ended.stderr[-4000:]}")
    failures = report.get("failures")
    if failures or ended.returncode:
        pytest.fail(f"{script}: {json.dumps(failures, indent=2)}\n{ended.stderr[-2000:]}")
    return report


@contextmanager
def served(database: str, *options: str) -> Iterator[str]:
    """A server in a process of its own, on a free port; its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "afl", "serve", "--port", "0", "--database", database, *options],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "http" in line, f"the server did not start: {line}"
        yield line[line.index("http") :].split()[0].rstrip("/")
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


@pytest.fixture(scope="session")
def browser() -> None:
    """Skips where there is no browser, no built dashboard or no database to show."""
    if not Path(CHROMIUM).exists():
        pytest.skip("there is no Chromium to look with")
    if not (STATIC / "index.html").exists() or not (UI / "node_modules").exists():
        pytest.skip("the dashboard is not built: `make ui` builds it")
    if not server_is_there():
        pytest.skip("there is no PostgreSQL to test with")
    try:
        node()
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures of pages are put: the folder in UI_SHOTS, for those who want to look."""
    return Path(os.environ.get("UI_SHOTS") or tmp_path_factory.mktemp("shots"))


@contextmanager
def dashboard_on(database: str, shots: Path) -> Iterator[Dashboard]:
    """A dashboard on a database that nobody else uses, with runs in every state and a worker."""
    with seeded(database) as stage, served(database, "--no-auth") as url:
        yield Dashboard(url, database, stage, shots)


@pytest.fixture(scope="module")
def dashboard(browser: None, shots: Path) -> Iterator[Dashboard]:
    """A dashboard on a database of its own, with runs in every state and a worker."""
    with fresh_database() as database, dashboard_on(database, shots) as made:
        yield made


@pytest.fixture(scope="module")
def empty_database(browser: None) -> Iterator[str]:
    """The URL of a database with the schema and nothing else."""
    with fresh_database() as database:
        yield database
