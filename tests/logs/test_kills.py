"""Workers that are killed while they store their lines: each line is there once, and what is
missing at the end is said."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from afl.logs.reading import Reader
from tests.chaos.logs_judge import Tally
from tests.chaos.logs_worker import NO_NATS, connect, run_of

_REPOSITORY = Path(__file__).parents[2]
_STREAMS = 3
_WORKERS = 3
_PATIENCE_SECONDS = 120.0


def _start(verb: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.logs_worker", verb, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=_REPOSITORY,
    )


def _written(process: subprocess.Popen[bytes], least: int) -> int:
    """How many lines a process has written to each stream, once they are so many; then it is
    killed."""
    assert process.stdout is not None
    written = 0
    while written < least:
        written = int(process.stdout.readline())
    process.kill()
    process.communicate()
    return written


def _inherit(root: Path, url: str) -> None:
    """Another worker stores what the dead ones have left."""
    left = [path for path in root.iterdir() if path.is_dir()]
    assert left
    heir = _start("heir", str(root), url, NO_NATS)
    try:
        end = time.monotonic() + _PATIENCE_SECONDS
        while any(path.exists() for path in left):
            assert time.monotonic() < end, "the spools of the dead workers are not stored"
            time.sleep(0.05)
        heir.communicate()
        assert heir.returncode == 0
    finally:
        heir.kill()
        heir.wait()


@pytest.mark.slow
@pytest.mark.parametrize("database", ["postgres_url", "mongo_url"])
def test_of_killed_workers_each_line_is_stored_once(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url: str = request.getfixturevalue(database)
    doomed = [
        _start("doomed", str(tmp_path), url, NO_NATS, str(number), f"0/{_STREAMS}/0")
        for number in range(_WORKERS)
    ]
    try:
        written = [
            _written(process, least=500 * (1 + number)) for number, process in enumerate(doomed)
        ]
    finally:
        for process in doomed:
            process.kill()
            process.wait()
    _inherit(tmp_path, url)
    tally = Tally()
    with connect(url) as store:
        for number, count in enumerate(written):
            tally.read(number, [count] * _STREAMS, Reader(store, run_of(number)).news())
    assert tally.problems == []
    assert (tally.lost, tally.doubled, tally.gaps) == (0, 0, _WORKERS * _STREAMS)
    assert tally.stored >= sum(written) * _STREAMS
