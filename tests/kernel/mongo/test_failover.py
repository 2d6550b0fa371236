"""A replica set that loses its primary: what was acknowledged stays, what is repeated is once."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from afl.kernel.errors import StoreUnavailable
from afl.kernel.model import (
    ClaimRequest,
    Close,
    Commit,
    Outcome,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.mongo.database import Database
from afl.kernel.mongo.migrate import migrate
from afl.kernel.mongo.refusals import NotReplicated
from afl.kernel.mongo.store import MongoStore
from tests.chaos.mongo_server import PrivateMongo, find_mongod
from tests.chaos.server import free_port

T = TypeVar("T")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def program() -> Path:
    found = find_mongod()
    if found is None:
        pytest.skip("there is no mongod on this machine")
    return found


@pytest.fixture(scope="module")
def trio(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateMongo]:
    with closing(PrivateMongo(program, tmp_path_factory.mktemp("mongo"), members=3)) as server:
        with closing(Database(server.url)) as database:
            migrate(database)
        yield server


def until_there(act: Callable[[], T], seconds: float = 60.0) -> T:
    """Repeats what may be repeated, as a worker does."""
    end = time.monotonic() + seconds
    while True:
        try:
            return act()
        except StoreUnavailable:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def test_nothing_acknowledged_is_lost_and_nothing_is_done_twice(trio: PrivateMongo) -> None:
    with MongoStore.connect(trio.url) as store:
        worker = WorkerId("w")
        store.register(WorkerSpec(worker, "w", handlers=("work",), lease=HOUR))
        stop = threading.Event()
        breaker = threading.Thread(target=_break, args=(trio, stop))
        breaker.start()
        try:
            fences = [_one_cycle(store, worker, number) for number in range(200)]
        finally:
            stop.set()
            breaker.join()
        trio.wait_until_writable()
        tasks = until_there(lambda: store.find_tasks(limit=1000))
        closed = [entry for entry in store.read_outbox(limit=1000) if entry.topic == "closed"]
    assert len({task.idem for task in tasks}) == len(tasks) == 200
    assert {task.outcome for task in tasks} == {Outcome.SUCCESS}
    assert len(closed) == len({entry.task for entry in closed}) == 200
    assert fences == sorted(set(fences)), "I9: fences only grow, whoever is the primary"


def _one_cycle(store: MongoStore, worker: WorkerId, number: int) -> int:
    spec = TaskSpec("event", "work", idem=f"task-{number}")
    until_there(lambda: store.enqueue([spec]))
    request = ClaimRequest(worker, ("work",), token=f"token-{number}")
    (claim,) = until_there(lambda: store.claim(request))
    until_there(lambda: store.commit([Commit(claim.fence, Close(Outcome.SUCCESS))]))
    return claim.fence


def _break(trio: PrivateMongo, stop: threading.Event) -> None:
    for number in range(6):
        if stop.wait(1.5):
            return
        trio.step_down() if number % 2 else trio.kill()
        trio.wait_until_writable()


def test_a_single_server_is_refused_with_what_to_do(program: Path, tmp_path: Path) -> None:
    port = free_port()
    options = ["--dbpath", str(tmp_path), "--port", str(port), "--bind_ip", "127.0.0.1"]
    process = subprocess.Popen([str(program), *options], stdout=subprocess.DEVNULL)
    try:
        with pytest.raises(NotReplicated, match=r"rs\.initiate\(\)"):
            until_there(lambda: MongoStore.connect(f"mongodb://127.0.0.1:{port}/afl"))
        with (
            closing(Database(f"mongodb://127.0.0.1:{port}/afl")) as database,
            pytest.raises(NotReplicated),
        ):
            migrate(database)
    finally:
        process.kill()
        process.wait()
