"""The frame of the dashboard, home and the list of runs, in a real browser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.ui.conftest import Dashboard, browse, served


def test_home_says_what_needs_somebody(dashboard: Dashboard) -> None:
    dashboard.browse("home")


def test_runs_are_found_and_acted_upon(dashboard: Dashboard) -> None:
    dashboard.browse("runs")


def test_everything_is_reached_without_a_mouse(dashboard: Dashboard) -> None:
    dashboard.browse("keyboard")


def test_dark_and_light_are_readable(dashboard: Dashboard) -> None:
    dashboard.browse("themes")


def test_an_empty_server_says_how_to_begin(empty_database: str, shots: Path) -> None:
    with served(empty_database, "--no-auth") as url:
        browse("first", url, shots)


def test_a_token_is_asked_for(empty_database: str, shots: Path) -> None:
    command = [sys.executable, "-m", "afl", "tokens", "create", "ada", "--role", "admin"]
    made = subprocess.run(
        [*command, "--database", empty_database], capture_output=True, text=True, check=True
    )
    with served(empty_database) as url:
        browse("token", url, shots, {"token": made.stdout.split()[-1]})
