"""A turn that is watched word by word: a worker, a server and a page, on one database."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from afl import Client
from tests.turns.slow_model import slow_model
from tests.ui.conftest import browse, served

FLOW = """\
namespace books {
  event facet Look(month: String) => (text: String)
    prompt { template "Are the books of {month} closed?" }
  workflow Report(month: String) => (text: String) andThen {
    it = Look(month = $.month)
    yield Report(text = it.text)
  }
}
"""
FIRST, SECOND, LAST = (
    ["I ", "look ", "at ", "the ", "books ", "first."],
    [" They ", "are ", "all ", "closed."],
    [" So ", "nothing ", "is ", "open."],
)
#: Before which word the model waits until the script has seen those before.
GATES = {len(FIRST): "second", len(FIRST + SECOND): "last"}
PATIENCE = 120


def test_a_turn_is_watched_word_by_word(empty_database: str, shots: Path, tmp_path: Path) -> None:
    def before(number: int) -> None:
        time.sleep(0.05)
        if number in GATES:
            _wait_for(tmp_path / GATES[number])

    with (
        slow_model(FIRST + SECOND + LAST, '{"text": "All is paid."}', before) as model,
        served(empty_database, "--no-auth") as url,
        Client(empty_database) as client,
    ):
        client.deploy(FLOW)
        with _worker(empty_database, model):
            run = client.submit("books.Report", {"month": "May"})
            browse("streaming", url, shots, {"run": run.id, "gates": str(tmp_path)})
            assert run.result("60s") == {"text": "All is paid."}


def _wait_for(gate: Path) -> None:
    end = time.monotonic() + PATIENCE
    while not gate.exists() and time.monotonic() < end:
        time.sleep(0.02)


@contextmanager
def _worker(database: str, model: str) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", "afl", "worker", "--database", database, "--turns", "2"],
        env={**os.environ, "AFL_MODEL": model, "OPENAI_API_KEY": "any"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
