"""A worker is killed in the middle of a step, and a page is cut off: what the page shows then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from afl import Client
from tests.ui.browsing import node
from tests.ui.conftest import CHROMIUM, UI, served
from tests.ui.wire import wire

#: How long the page is cut off.
AWAY_SECONDS = float(os.environ.get("AWAY_SECONDS", "3"))

FLOW = """\
namespace demo {
  event facet Hold(name: String) => (text: String)

  workflow Watch(name: String) => (text: String) andThen {
    held = Hold(name = $.name)
    yield Watch(text = held.text)
  }
}
"""
HANDLERS = """\
import pathlib, time

import afl

app = afl.App("demo")


@app.handler("demo.Hold")
def hold(name: str) -> str:
    pathlib.Path("held").touch()
    while not pathlib.Path("go").exists():
        time.sleep(0.05)
    return name
"""


@contextmanager
def _worker(folder: Path, database: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "afl", "worker", "--handlers", "handlers", "--lease", "2s"]
    process = subprocess.Popen(
        [*command, "--database", database], cwd=folder, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


class _Script:
    """A script of `ui/e2e` that is driven by what happens around it, and says how far it is."""

    def __init__(self, name: str, url: str, run: str) -> None:
        self._process = subprocess.Popen(
            [node(), f"e2e/{name}.mjs"],
            cwd=UI,
            env={**os.environ, "BASE_URL": url, "CHROMIUM": CHROMIUM, "RUN": run},
            stdout=subprocess.PIPE,
            text=True,
        )

    def hear(self, word: str) -> None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line == word, line

    def end(self) -> dict[str, list[str]]:
        out, _ = self._process.communicate(timeout=120)
        report: dict[str, list[str]] = json.loads(out.strip().splitlines()[-1])
        return report


@pytest.mark.usefixtures("browser")
def test_a_killed_worker_is_shown_and_so_is_who_took_over(
    empty_database: str, tmp_path: Path
) -> None:
    (tmp_path / "handlers.py").write_text(HANDLERS, encoding="utf-8")
    with (
        Client(empty_database) as client,
        served(empty_database, "--no-auth") as url,
        wire(url) as between,
    ):
        client.deploy(FLOW)
        run = client.submit("demo.Watch", {"name": "ada"})
        with _worker(tmp_path, empty_database) as first:
            while not (tmp_path / "held").exists():
                assert first.poll() is None
                time.sleep(0.05)
            script = _Script("losses", between.url, run.id)
            script.hear("running")
            first.kill()
            script.hear("lost")
            with _worker(tmp_path, empty_database):
                script.hear("taken over")
                between.cut()
                script.hear("cut off")
                (tmp_path / "go").touch()
                run.result("60s")
                time.sleep(AWAY_SECONDS)
                script.hear("still there")
                between.mend()
                report = script.end()
    assert report["failures"] == []
    assert len(report["checks"]) >= 5
