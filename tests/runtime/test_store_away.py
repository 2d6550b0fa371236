"""Runs that are placed on a worker go on while the database is away, and are taken in when it is
back; if somebody else has taken them over by then, nothing of it counts."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any

import pytest

from afl.kernel.errors import StoreUnavailable
from afl.kernel.model import (
    CallStatus,
    ClaimRequest,
    Close,
    Commit,
    Json,
    Outcome,
    TaskId,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.mongo.database import Database
from afl.kernel.working.hands import Held, give_back
from afl.kernel.working.lease import Lease
from afl.lang.api import compile_sources
from afl.runtime.evaluator import Evaluator, ExecutionStatus
from afl.runtime.handler_table import HandlerTable, Invocation
from afl.runtime.memory_store import MemoryStore
from afl.runtime.mongo import migrate as mongo_migrate
from afl.runtime.postgres.migrate import migrate
from afl.runtime.step import WorkflowId
from afl.runtime.superseded import Superseded
from afl.runtime.worker import Worker, WorkerConfig
from afl.runtime.working.spooling import ResultSpool, tell_leftovers
from tests.chaos.mongo_server import PrivateMongo, find_mongod
from tests.chaos.server import PrivatePostgres, find_binaries
from tests.runtime.kept import connect
from tests.runtime.serving import BILLING

BINARIES = find_binaries()
MONGOD = find_mongod()

Server = PrivatePostgres | PrivateMongo

STEPS = 10
LEASE_SECONDS = 1.0
PATIENCE_SECONDS = 60.0


def source(kind: str) -> str:
    calls = "\n".join(f"    s{n} = Add(x = {f's{n - 1}.x' if n else '$.x'})" for n in range(STEPS))
    return f"""
namespace placed {{
  event facet Add(x: Int) => (x: Int)
  workflow Line(x: Int) => (x: Int) with Placement(kind = {kind}) andThen {{
{calls}
    yield Line(x = s{STEPS - 1}.x)
  }}
}}
"""


def program(evaluator: Evaluator, text: str) -> str:
    compiled = compile_sources([("flow.afl", text)]).program
    assert compiled is not None
    return evaluator.plans.add(compiled)


class World:
    """A server that comes and goes, and a run of ten steps on it."""

    def __init__(self, server: Server, kind: str) -> None:
        self.server = server
        self.evaluator = self.connect()
        text = source(kind)
        self.run = self.evaluator.start(program(self.evaluator, text), "placed.Line", {"x": 0})

    def connect(self) -> Evaluator:
        persistence = connect(self.server.url)
        self._open = [*getattr(self, "_open", []), persistence]
        return Evaluator(persistence)

    def worker(
        self, add: Callable[[Invocation], dict[str, Json]], name: str, spool: Path | None = None
    ) -> Worker:
        table = HandlerTable()
        table.register("placed.Add", add)
        config = WorkerConfig(
            lease_seconds=LEASE_SECONDS,
            renew_seconds=LEASE_SECONDS / 4,
            service=name,
            spool=spool,
        )
        return Worker(self.connect(), table, config)

    def close(self) -> None:
        for persistence in self._open:
            persistence.close()


@contextmanager
def postgres() -> Iterator[PrivatePostgres]:
    if BINARIES is None:
        pytest.skip("there is no PostgreSQL to start")
    with TemporaryDirectory() as folder:
        # the server runs as somebody else
        Path(folder).chmod(0o755)
        with closing(PrivatePostgres(BINARIES, Path(folder) / "server")) as made:
            migrate(made.url)
            yield made


@contextmanager
def mongo() -> Iterator[PrivateMongo]:
    if MONGOD is None:
        pytest.skip("there is no MongoDB to start")
    with (
        TemporaryDirectory() as folder,
        closing(PrivateMongo(MONGOD, Path(folder))) as made,
        closing(Database(made.url)) as database,
    ):
        mongo_migrate.migrate(database)
        yield made


@pytest.fixture(params=[postgres, mongo])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with request.param() as made:
        yield made


def until(holds: Callable[[], bool], what: str) -> None:
    end = monotonic() + PATIENCE_SECONDS
    while not holds():
        assert monotonic() < end, f"{what} has not come about"
        sleep(0.02)


def ended(world: World, run: WorkflowId) -> bool:
    try:
        return world.evaluator.result(run).status is not ExecutionStatus.PAUSED
    except StoreUnavailable:
        # a connection from before
        return False


@pytest.mark.parametrize("kind", ["sticky", "pinned"])
def test_it_finishes_without_the_store_and_is_adopted(server: Server, kind: str) -> None:
    """Away for three times its lease, from the third step on."""
    world = World(server, kind)
    done: list[tuple[int, str]] = []
    in_third, away = threading.Event(), threading.Event()

    def add(given: Invocation) -> dict[str, Json]:
        x = given.params["x"]
        assert isinstance(x, int)
        if x == 2:
            in_third.set()
            assert away.wait(PATIENCE_SECONDS)
        done.append((x, given.task.id))
        return {"x": x + 1}

    worker = world.worker(add, "one")
    worker.start()
    try:
        assert in_third.wait(PATIENCE_SECONDS)
        server.stop()
        began = monotonic()
        away.set()
        until(lambda: len(done) == STEPS, "the last step")
        sleep(max(0.0, began + 3 * LEASE_SECONDS - monotonic()))
        server.start()
        until(lambda: ended(world, world.run), "the end of the run")
        result = world.evaluator.result(world.run)
        assert (result.status, result.outputs) == (ExecutionStatus.COMPLETED, {"x": STEPS})
        assert [x for x, _ in done] == list(range(STEPS)), "each step once, in order"
        task = world.evaluator.persistence.kernel.get_task(TaskId(world.run))
        assert task is not None
        assert task.crashes == 0
        steps = world.evaluator.persistence.get_steps_by_workflow(world.run)
        assert all(step.is_complete for step in steps)
        assert len(steps) >= STEPS
    finally:
        assert worker.drain(PATIENCE_SECONDS)
        world.close()


@pytest.mark.parametrize(
    ("kind", "status"),
    [("sticky", ExecutionStatus.COMPLETED), ("pinned", ExecutionStatus.ERROR)],
)
def test_what_was_taken_over_meanwhile_does_not_count(
    server: Server, kind: str, status: ExecutionStatus
) -> None:
    """One worker is cut off, as by its network; another takes its run over, or finds it lost."""
    world = World(server, kind)
    in_third, goes_on = threading.Event(), threading.Event()
    mine: list[int] = []
    other: list[int] = []

    def add_slowly(given: Invocation) -> dict[str, Json]:
        x = given.params["x"]
        assert isinstance(x, int)
        if x == 2:
            in_third.set()
            assert goes_on.wait(PATIENCE_SECONDS)
        mine.append(x)
        return {"x": x + 1}

    def add(given: Invocation) -> dict[str, Json]:
        x = given.params["x"]
        assert isinstance(x, int)
        other.append(x)
        return {"x": x + 1}

    first = world.worker(add_slowly, "first")
    cut = Cut(first)
    first.start()
    second = world.worker(add, "second")
    try:
        assert in_third.wait(PATIENCE_SECONDS)
        cut.off()
        second.start()
        until(lambda: ended(world, world.run), "the end of the run")
        before = world.evaluator.result(world.run)
        goes_on.set()
        until(lambda: len(mine) == STEPS, "the last step of the one that is cut off")
        cut.on()
        until(lambda: first.counters.flows_in_hand == 0 and first.counters.refused > 0, "refusal")
        after = world.evaluator.result(world.run)
        assert after == before
        until(lambda: len(late(world)) == STEPS - 2, "both outcomes")
        assert {each.path: each.body for each in late(world)} == {
            f"0/s{x}": {"x": x + 1} for x in range(2, STEPS)
        }
        assert {(each.worker, each.status) for each in late(world)} == {(first.id, CallStatus.OK)}
        assert after.status is status
        if kind == "sticky":
            assert after.outputs == {"x": STEPS}
            assert other == list(range(2, STEPS)), "from where the rows say that it was"
        else:
            assert after.error is not None
            assert after.error["type"] == "Crashed"
            assert other == []
    finally:
        assert second.drain(PATIENCE_SECONDS)
        assert first.drain(PATIENCE_SECONDS)
        world.close()


def late(world: World) -> list[Superseded]:
    return world.evaluator.persistence.get_superseded(world.run)


class Cut:
    """The connection of one worker, which can be cut."""

    def __init__(self, worker: Worker) -> None:
        kernel: Any = worker._kernel
        self._database = kernel.database
        # what every question goes through
        names = ("_once", "_translated")
        self._real = {name: getattr(self._database, name, None) for name in names}

    def off(self) -> None:
        def refuse(*_given: object) -> object:
            raise StoreUnavailable("The network is cut.")

        for name in self._real:
            setattr(self._database, name, refuse)

    def on(self) -> None:
        for name, real in self._real.items():
            setattr(self._database, name, real)


def test_what_cannot_be_taken_back_is_not_begun_at_the_end_of_a_lease() -> None:
    """It is given back, and begun once, when the lease is sure to last."""
    evaluator = Evaluator(MemoryStore())
    begun: list[Json] = []

    def wire(given: Invocation) -> dict[str, Json]:
        begun.append(given.params["amount"])
        return {"paid": 1}

    table = HandlerTable()
    table.register("billing.Wire", wire)
    worker = Worker(evaluator, table, WorkerConfig())
    lasts, worker._lease._seconds = worker._lease._seconds, 0.0
    worker.start()
    try:
        run = evaluator.start(program(evaluator, BILLING), "billing.Wired", {"amount": 7})
        until(lambda: worker.counters.claims > 3, "claims")
        assert begun == []
        worker._lease._seconds = lasts
        until(lambda: evaluator.result(run).status is ExecutionStatus.COMPLETED, "the end")
        assert begun == [7]
    finally:
        assert worker.drain(PATIENCE_SECONDS)


def test_a_lease_by_the_workers_own_clock() -> None:
    now = [0.0]
    lease = Lease(10.0, lambda: now[0])
    # safe to begin what cannot be taken back, and fit to judge others
    assert seen(lease, now, 0.0) == (True, True)
    assert seen(lease, now, 8.5) == (False, True), "it might take effect too late"
    asked = lease.ask()
    now[0] = 9.5
    lease.renewed(asked)
    assert seen(lease, now, 16.4) == (True, True), "it counts from when it was asked for"
    assert seen(lease, now, 16.6) == (False, True)
    assert seen(lease, now, 30.0) == (False, False), "who is cut off calls nobody lost"
    lease.renewed(lease.ask())
    assert seen(lease, now, 30.1) == (True, False), "others get time to come back too"
    now[0] = 39.0
    lease.renewed(lease.ask())
    assert seen(lease, now, 39.9) == (True, False)
    assert seen(lease, now, 40.0) == (True, True)


def seen(lease: Lease, now: list[float], at: float) -> tuple[bool, bool]:
    now[0] = at
    return lease.is_safe, lease.may_judge


def test_results_outlive_their_worker(server: Server, tmp_path: Path) -> None:
    """Both are away, the database first; the next worker with the folder tells what was done."""
    world = World(server, "spread")
    far = FarWorker(server.url, tmp_path)
    far.wait_for("begun")
    server.stop()
    far.say("finish")
    until(lambda: any(each.stat().st_size for each in tmp_path.glob("*.results")), "a result")
    far.kill()
    server.start()
    done: list[Json] = []

    def add(given: Invocation) -> dict[str, Json]:
        x = given.params["x"]
        assert isinstance(x, int)
        done.append(x)
        return {"x": x + 1}

    worker = world.worker(add, "next", spool=tmp_path)
    until(lambda: is_there(world), "the database")
    worker.start()
    try:
        until(lambda: ended(world, world.run), "the end of the run")
        assert world.evaluator.result(world.run).outputs == {"x": STEPS}
        assert done == list(range(1, STEPS)), "the first step was adopted"
        assert list(tmp_path.glob("*.results")) == []
        assert late(world) == []
    finally:
        assert worker.drain(PATIENCE_SECONDS)
        world.close()


def test_a_result_of_work_that_others_have_done_is_too_late(tmp_path: Path) -> None:
    evaluator = Evaluator(MemoryStore())
    run = evaluator.start(program(evaluator, source("spread")), "placed.Line", {"x": 0})
    evaluator.resume(run)
    kernel = evaluator.persistence.kernel
    kernel.register(WorkerSpec(WorkerId("slow"), "slow", lease=timedelta(hours=1)))
    (claim,) = kernel.claim(ClaimRequest(WorkerId("slow"), ("placed.Add",)))
    spool = ResultSpool(tmp_path, "slow/1")
    spool.keep(Held(claim), Close(Outcome.SUCCESS, {"x": 77}))
    spool.keep(Held(claim), Close(Outcome.SUCCESS, {"x": 78}))
    assert tell_leftovers(tmp_path, evaluator.persistence) == 0, "its process lives"
    (path,) = tmp_path.glob("*.results")
    text = path.read_text(encoding="utf-8")
    spool.clear()
    assert list(tmp_path.iterdir()) == []
    give_back(kernel, claim.fence)
    (again,) = kernel.claim(ClaimRequest(WorkerId("slow"), ("placed.Add",)))
    kernel.commit([Commit(again.fence, Close(Outcome.SUCCESS, {"x": 1}))])
    path.write_text(text + '{"fence": 1, "cut', encoding="utf-8")
    assert tell_leftovers(tmp_path, evaluator.persistence) == 0
    (found,) = evaluator.persistence.get_superseded(run)
    assert (found.path, found.worker, found.body) == ("0/s0", "slow/1", {"x": 77})
    assert list(tmp_path.iterdir()) == []


def is_there(world: World) -> bool:
    try:
        world.evaluator.persistence.get_run(world.run)
    except StoreUnavailable:
        return False
    return True


class FarWorker:
    """A worker in a process of its own, whose first step ends when it is told to."""

    def __init__(self, url: str, spool: Path) -> None:
        words = [sys.executable, "-m", "tests.runtime.away_worker", url, str(spool)]
        self._process = subprocess.Popen(
            [*words, str(LEASE_SECONDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=Path(__file__).parents[2],
        )

    def wait_for(self, line: str) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == f"{line}\n"

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()
