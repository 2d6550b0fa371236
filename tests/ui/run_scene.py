"""A server with runs of every kind, for tests and pictures of the page of a run.

    python -m tests.ui.run_scene postgresql://127.0.0.1/name [folder with the built dashboard]

prints where it is and the ids of the runs, and serves until its input is closed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn

from afl import Client
from afl.app.migrating import migrate
from afl.base.settings import Settings
from afl.server import files
from afl.server.application import create_app
from afl.server.serving import open_backend

FLOW = """\
/** Closing the books of a month. */
namespace billing {
  /** Finds the customers of a month. */
  event facet Load(month: String, customers: Int) => (names: [String])

  /** Takes the money. */
  event facet Charge(customer: String, cents: Int) => (receipt: String)
    with Retry(max_attempts = 2, delay = 300ms, jitter = false)

  event facet Notify(receipt: String) => (message: String)

  /** Writes everything into one file, slowly, and says so. */
  event facet Export(month: String) => (rows: Int)

  event facet Fax(text: String) => (pages: Int)

  /** May the month be closed? */
  event facet Approve(title: String, total: Int) => (ok: Boolean, note: String?)
    with Human(group = "finance")

  event facet Search(query: String) => (hits: [String])

  event facet Summarize(month: String) => (text: String, sure: Boolean)
    prompt {
      system "You write short reports about the books of a company."
      template "Summarize the month {month}."
      tools [Search]
    }

  workflow MonthlyClose(
    month: String,
    cents: Int = 4200,
    customers: Int = 12,
  ) => (receipts: [String]) andThen {
    loaded = Load(month = $.month, customers = $.customers)
  } andThen foreach customer in loaded.names {
    charged = Charge(customer = $.customer, cents = $.cents)
    told = Notify(receipt = charged.receipt)
    yield MonthlyClose(receipts = [charged.receipt])
  }

  workflow Wait(title: String) => (ok: Boolean) andThen {
    asked = Approve(title = $.title, total = 42)
    faxed = Fax(text = $.title)
    napped = afl.time.Sleep(duration = 1h)
    yield Wait(ok = asked.ok)
  }

  workflow ExportMonth(month: String) => (rows: Int) andThen {
    written = Export(month = $.month)
    yield ExportMonth(rows = written.rows)
  }

  workflow Report(month: String) => (text: String) andThen {
    written = Summarize(month = $.month)
    yield Report(text = written.text)
  }
}
"""
REPLIES = {
    "replies": [
        {
            "text": "I look for **open** bills first.",
            "calls": [{"name": "Search", "arguments": {"query": "open bills"}}],
        },
        {"calls": [{"name": "submit_result", "arguments": {"text": "All paid.", "sure": True}}]},
    ]
}
SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Scene:
    """Where it is, and its runs by what they are good for."""

    url: str
    runs: dict[str, str]


def _until(look: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(int(SECONDS * 20)):
        if look():
            return
        pause.wait(0.05)
    raise TimeoutError("the runs of the scene did not come to where they belong")


def _runs(client: Client) -> dict[str, str]:
    month = {"month": "2026-10"}
    labels = {"env": "prod", "tenant": "acme"}
    runs = {
        "failed": client.submit("billing.MonthlyClose", month, labels=labels).id,
        "done": client.submit("billing.MonthlyClose", {**month, "cents": 500}).id,
        "waits": client.submit("billing.Wait", {"title": "Close October"}).id,
        "turn": client.submit("billing.Report", month).id,
        "running": client.submit("billing.ExportMonth", month, labels=labels).id,
        "stopped": client.submit("billing.ExportMonth", {"month": "2026-09"}).id,
    }
    ended = ("failed", "done", "turn")
    get = client.operations.get
    _until(lambda: all(get(runs[name]).finished_at is not None for name in ended))
    return runs


@contextmanager
def _worker(database: str, folder: str) -> Iterator[None]:
    """A worker in a process of its own, which keeps what handlers say."""
    Path(folder, "replies.json").write_text(json.dumps(REPLIES), encoding="utf-8")
    command = ["worker", "--handlers", "tests.ui.run_handlers", "--database", database]
    process = subprocess.Popen(
        [sys.executable, "-m", "afl", *command, "--spool", folder, "--drain", "1s"],
        env={**os.environ, "AFL_MODEL": f"scripted:{folder}/replies.json"},
        cwd=Path(__file__).parents[2],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def _server(database: str) -> Iterator[str]:
    with open_backend(database, Settings(), auth=False) as backend:
        config = uvicorn.Config(create_app(backend), host="127.0.0.1", port=0, log_config=None)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        _until(lambda: server.started)
        try:
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(10)


@contextmanager
def open_scene(database: str, static: Path | None = None) -> Iterator[Scene]:
    """A server on a migrated database, a worker beside it, and runs.

    Args:
        static: the built dashboard, if it is not the one in the package.
    """
    if static is not None:
        files.STATIC = static
    with TemporaryDirectory() as folder, Client(database) as client:
        client.deploy(FLOW)
        with _worker(database, folder), _server(database) as url:
            yield Scene(url, _runs(client))


def main() -> None:
    database = sys.argv[1]
    static = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # the worker ends with it
    migrate(database)
    with open_scene(database, static) as scene:
        sys.stdout.write(json.dumps({"url": scene.url, "runs": scene.runs}) + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
