"""Projects in folders of their own, and `afl dev` as a process on one of them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tests.cli.runner import AFL, plain_environment, process
from tests.cli.test_json_shapes import validate

T = TypeVar("T")

PATIENCE_SECONDS = 60.0


def eventually(look: Callable[[], T | None]) -> T:
    """What a look finds at last; falsy is nothing yet."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.05)


@contextmanager
def folder() -> Iterator[Path]:
    """A folder that everybody may pass through: PostgreSQL is not run by root."""
    made = Path(tempfile.mkdtemp(prefix="afl-dev-"))
    made.chmod(0o755)
    try:
        yield made
    finally:
        shutil.rmtree(made)


@contextmanager
def project(template: str = "hello") -> Iterator[Path]:
    """A new project."""
    with folder() as above:
        done = process("init", "demo", "--template", template, cwd=above)
        assert done.returncode == 0, done.stderr
        yield above / "demo"


class Dev:
    """`afl dev` on a project, from its start to its end."""

    def __init__(self, project: Path, *options: str) -> None:
        self.project = project
        self._errors = (project / "dev.err").open("ab")
        self.process = subprocess.Popen(
            [AFL, "dev", "--json", "--port", "0", "--no-browser", *options],
            cwd=project,
            env={**plain_environment(), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self.started = self.event("started")
        self.url = str(self.started["url"])

    def event(self, name: str) -> dict[str, Any]:
        """The next event of this name that it tells."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            validate(line, "dev")
            found: dict[str, Any] = json.loads(line)
            if found["event"] == name:
                return found
        raise AssertionError((self.project / "dev.err").read_text(encoding="utf-8"))

    def get(self, path: str) -> Any:  # noqa: ANN401
        with urllib.request.urlopen(f"{self.url}/api/v1{path}", timeout=30) as answer:
            return json.load(answer)

    def post(self, path: str, form: object) -> Any:  # noqa: ANN401
        request = urllib.request.Request(
            f"{self.url}/api/v1{path}",
            json.dumps(form).encode(),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def runs(self) -> list[dict[str, Any]]:
        return list(self.get("/runs")["items"])

    def submit(self, workflow: str, **inputs: object) -> str:
        """Starts a run."""
        form = {"workflow": workflow, "inputs": inputs}
        return str(self.post("/runs", form)["run"]["id"])

    def outputs(self, run: str) -> dict[str, Any]:
        """What a run comes to."""

        def look() -> dict[str, Any] | None:
            found: dict[str, Any] = self.get(f"/runs/{run}")
            assert found["state"] not in ("failed", "canceled"), found
            return found if found["state"] == "completed" else None

        return dict(eventually(look)["outputs"])

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self._end()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self._end()

    def _end(self) -> None:
        self.process.wait(PATIENCE_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._errors.close()


@contextmanager
def dev(project: Path, *options: str) -> Iterator[Dev]:
    """`afl dev`, told to stop at the end."""
    running = Dev(project, *options)
    try:
        yield running
    finally:
        running.stop()


def postmaster(project: Path) -> int | None:
    """The PostgreSQL of a project, if one says that it runs."""
    try:
        note = (project / ".afl" / "postgres" / "data" / "postmaster.pid").read_text()
    except FileNotFoundError:
        return None
    return int(note.split("\n", 1)[0])


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # one that nobody has waited for is dead all the same
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
