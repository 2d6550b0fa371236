"""Real processes: `python -m afl.runtime.runner`, told to end, and killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from afl.kernel.model import RunId, State, Task, WorkerId, WorkerState
from afl.runtime.step import WorkflowId
from tests.runtime.kept import connect
from tests.runtime.serving import PATIENCE_SECONDS, Serving, eventually, serving

SLOW = """
namespace slow {
  event facet Slow(amount: Int) => (paid: Int)
  event facet Pay(amount: Int) => (paid: Int)
  workflow Once(amount: Int) => (paid: Int) andThen {
    a = Slow(amount = $.amount)
    b = Pay(amount = a.paid)
    yield Once(paid = b.paid)
  }
}
"""


@pytest.fixture
def served(server_url: str) -> Iterator[Serving]:
    with serving(connect(server_url)) as made:
        yield made


class Runner:
    """A runner process, by the id that it tells in its log."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"serving (.*) as (\S+)$", line)
        assert found is not None, line + process.stderr.read()
        self.id = WorkerId(found[2])
        line = process.stderr.readline()
        assert re.search(r"status at http://127\.0\.0\.1:[1-9]\d*/status$", line), line

    @property
    def pid(self) -> int:
        return self.process.pid


@contextmanager
def runner(url: str, folder: Path, *options: str) -> Iterator[Runner]:
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "afl.runtime.runner"),
            *("--database-url", url, "--handlers", "tests.runtime.runner_handlers"),
            *("--http-port", "0", "--poll-interval-ms", "50"),
            *("--lock-duration-ms", "1500", "--lock-extend-interval-ms", "300"),
            *options,
        ],
        env={**os.environ, "SLOW_FOLDER": str(folder)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Runner(process)
    finally:
        process.kill()
        process.communicate()


def callee(served: Serving, run: WorkflowId) -> Task:
    tasks = served.store.kernel.find_tasks(run=RunId(run))
    (task,) = [task for task in tasks if task.name == "slow.Slow"]
    return task


def wait_entered(folder: Path, process: Runner) -> None:
    entered = folder / f"entered-{process.pid}"
    eventually(entered.exists, "the handler is called")


def wait_done(served: Serving, run: WorkflowId) -> None:
    eventually(lambda: served.evaluator.result(run).success, "the run is done")


def test_sigterm_lets_the_handler_finish(served: Serving, server_url: str, tmp_path: Path) -> None:
    run = served.start("slow.Once", SLOW, amount=1)
    with runner(server_url, tmp_path) as first:
        wait_entered(tmp_path, first)
        first.process.send_signal(signal.SIGTERM)

        def says_so() -> bool:
            worker = served.store.kernel.get_worker(first.id)
            return worker is not None and worker.state is WorkerState.SHUTDOWN

        eventually(says_so, "it says that it ends")
        (tmp_path / "leave").touch()
        assert first.process.wait(PATIENCE_SECONDS) == 0
    # the handler's work is kept; what came after it was left to others
    task = callee(served, run)
    assert (task.state, task.result) == (State.CLOSED, {"paid": 2})
    assert served.evaluator.result(run).status.value == "PAUSED"
    with runner(server_url, tmp_path):
        wait_done(served, run)
    assert served.evaluator.result(run).outputs == {"paid": 3}


def test_sigterm_hands_back_what_does_not_finish(
    served: Serving, server_url: str, tmp_path: Path
) -> None:
    run = served.start("slow.Once", SLOW, amount=1)
    with runner(server_url, tmp_path, "--shutdown-timeout-ms", "100") as first:
        wait_entered(tmp_path, first)
        first.process.send_signal(signal.SIGINT)
        assert first.process.wait(PATIENCE_SECONDS) == 0
    task = callee(served, run)
    assert (task.state, task.worker, task.crashes) == (State.READY, None, 0)


def test_the_work_of_a_killed_runner_is_done_by_another(
    served: Serving, server_url: str, tmp_path: Path
) -> None:
    run = served.start("slow.Once", SLOW, amount=1)
    with runner(server_url, tmp_path) as first:
        wait_entered(tmp_path, first)
        os.kill(first.pid, signal.SIGKILL)
        assert first.process.wait(PATIENCE_SECONDS) == -signal.SIGKILL
    assert callee(served, run).worker == first.id
    (tmp_path / "leave").touch()
    with runner(server_url, tmp_path) as second:
        wait_entered(tmp_path, second)
        wait_done(served, run)
    assert served.evaluator.result(run).outputs == {"paid": 3}
