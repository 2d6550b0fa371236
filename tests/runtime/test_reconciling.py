"""Runs end with their tasks, whoever has closed them; and what is done to a run reaches those that
it has called."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from afl.kernel.doorbell import LocalDoorbell
from afl.kernel.model import Json, State, Task, TaskId, WorkerId, WorkerSpec
from afl.runtime.entities import Run
from afl.runtime.handler_table import HandlerTable
from afl.runtime.operations import Operations
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.settling import ENDED, Settler
from afl.runtime.step import WorkflowId
from afl.runtime.working.sweeping import SWEEPER, Sweeper
from tests.runtime.driving import World
from tests.runtime.kept import HOUR, Kept
from tests.runtime.serving import Serving, eventually, paying, serving

SECOND = timedelta(seconds=1)
FLOW = """
namespace t {
  event facet Do(n: Int) => (r: Int)
  workflow Leaf(n: Int) => (r: Int) andThen {
    a = Do(n = $.n)
    b = Do(n = a.r)
    yield Leaf(r = b.r)
  }
  workflow Branch(n: Int) => (r: Int) andThen { l = Leaf(n = $.n) yield Branch(r = l.r) }
  workflow Trunk(n: Int) => (r: Int) andThen {
    b = Branch(n = $.n)
    l = Leaf(n = b.r)
    yield Trunk(r = l.r)
  }
}
"""
WAITS = """
namespace t {
  workflow Waits(key: String) => (p: Json) andThen {
    e = afl.event.Wait(name = "go", key = $.key)
    yield Waits(p = e.payload)
  }
}
"""


@pytest.fixture
def world(kept: Kept) -> World:
    world = World(kept)
    world.deploy(FLOW)
    return world


@pytest.fixture
def served(real_store: PersistenceAPI) -> Iterator[Serving]:
    """A store on the real clock."""
    with serving(real_store) as made:
        yield made


def one(n: int) -> dict[str, Json]:
    return {"r": n + 1}


def row(world: World, run: str) -> Run:
    """A run as it is stored: nobody looks after it."""
    found = world.kept.store.get_run(WorkflowId(run))
    assert found is not None
    return found


def begin(world: World, workflow: str = "t.Trunk", **options: timedelta) -> Run:
    return world.drive(
        world.operations.submit(workflow, {"n": 1}, deadline=options.get("deadline"))
    )


def family(world: World, run: Run) -> list[str]:
    """A run, the one it has called, and so on."""
    ids: list[str] = [run.id]
    while children := world.kept.store.find_runs(parent=WorkflowId(ids[-1])):
        ids.append(children[-1].id)
    return ids


class TestSettling:
    def test_a_run_past_its_deadline(self, world: World) -> None:
        run = begin(world, deadline=10 * SECOND)
        settler = Settler(world.kept.store)
        assert settler.settle_runs() == 0
        world.kept.advance(11 * SECOND)
        world.kept.store.kernel.sweep()
        assert row(world, run.id).state == "running"
        assert settler.settle_runs() > 0
        ended = row(world, run.id)
        assert ended.error is not None
        assert (ended.state, ended.error["type"]) == ("failed", "Timeout")
        assert settler.settle_runs() == 0

    def test_a_run_that_was_given_up(self, world: World) -> None:
        run = world.operations.submit("t.Leaf", {"n": 1})
        kernel = world.kept.store.kernel
        for number in range(10):
            worker = WorkerId(f"frail-{number}")
            kernel.register(WorkerSpec(worker, "frail", lease=SECOND))
            if kernel.take(worker, TaskId(run.id)) is None:
                break
            world.kept.advance(2 * SECOND)
            kernel.sweep()
        assert Settler(world.kept.store).settle_runs() == 1
        ended = row(world, run.id)
        assert ended.error is not None
        assert (ended.state, ended.error["type"]) == ("failed", "Crashed")

    def test_called_runs_whose_caller_is_gone(self, world: World) -> None:
        run = begin(world)
        ids = family(world, run)
        assert len(ids) == 3
        world.kept.store.kernel.stop(TaskId(run.id))
        for _ in ids:
            world.kept.store.kernel.sweep()
        assert Settler(world.kept.store).settle_runs() == 3
        assert [row(world, each).state for each in ids] == ["canceled"] * 3

    def test_it_goes_round_a_few_at_a_time(self, world: World) -> None:
        runs = [world.operations.submit("t.Leaf", {"n": 1}).id for _ in range(5)]
        settler = Settler(world.kept.store)
        assert settler.settle_runs(2) == 0
        for run in (runs[0], runs[4]):
            world.kept.store.kernel.stop(TaskId(run))
        assert [settler.settle_runs(2) for _ in range(4)] == [0, 1, 1, 0]
        states = [row(world, run).state for run in runs]
        assert states == ["canceled", "created", "created", "created", "canceled"]

    def test_get_and_list_need_no_sweep(self, world: World) -> None:
        first, second = begin(world), begin(world)
        for run in (first, second):
            world.kept.store.kernel.stop(TaskId(run.id))
        assert world.operations.get(first.id).state == "canceled"
        found = world.operations.list(workflow="t.Trunk")
        assert [run.state for run in found] == ["canceled", "canceled"]
        assert row(world, second.id).state == "canceled"


class TestSweeper:
    def test_one_at_a_time(self, world: World) -> None:
        rung: list[str] = []
        sweepers = [Sweeper(world.kept.store, name, rung.extend) for name in ("a", "b")]
        run = begin(world, deadline=10 * SECOND)
        assert [sweeper.sweep() is None for sweeper in sweepers] == [False, True]
        world.kept.advance(2 * SECOND)
        assert [sweeper.sweep() is None for sweeper in sweepers] == [False, True]
        # the first is not heard of any more
        world.kept.advance(20 * SECOND)
        assert sweepers[1].sweep()
        assert sweepers[0].sweep() is None
        assert row(world, run.id).state == "failed"
        assert rung == [ENDED]

    def test_it_can_be_handed_on(self, world: World) -> None:
        first, second = (Sweeper(world.kept.store, name, lambda _: None) for name in ("a", "b"))
        first.sweep()
        second.release()
        assert second.sweep() is None
        first.release()
        assert second.sweep() is not None

    def test_a_wait_whose_event_was_there_first_is_answered_at_once(self, world: World) -> None:
        world.deploy(WAITS)
        world.operations.emit("go", "1", {"x": 1})
        run = world.operations.submit("t.Waits", {"key": "1"})
        assert world.operations.evaluator.resume(run.id).outputs == {"p": {"x": 1}}


class TestWorkers:
    def test_one_worker_of_many_sweeps(self, served: Serving) -> None:
        workers = [served.worker(HandlerTable()) for _ in range(3)]
        kernel = served.store.kernel
        eventually(lambda: kernel.get_lock(SWEEPER) is not None, "somebody sweeps")
        lock = kernel.get_lock(SWEEPER)
        assert lock is not None
        (sweeping,) = [worker for worker in workers if worker.id == lock.token]
        sweeping.drain(1.0)
        eventually(
            lambda: (held := kernel.get_lock(SWEEPER)) is not None and held.token != sweeping.id,
            "another one has taken over",
        )

    def test_a_run_that_was_stopped_ends_without_a_look(self, served: Serving) -> None:
        run = served.start("billing.Once", amount=1)
        served.store.kernel.stop(TaskId(run))
        served.worker(paying())
        eventually(
            lambda: (found := served.store.get_run(run)) is not None and found.state == "canceled",
            "the run has ended",
        )

    def test_whoever_waits_for_a_run_hears_of_its_end(self, served: Serving) -> None:
        doorbell = LocalDoorbell()
        run = served.start("billing.Once", amount=1)
        doorbell.wait([ENDED], 0.0)
        served.worker(paying(), doorbell=doorbell)
        assert doorbell.wait([ENDED], 30.0)
        assert Operations(served.store, doorbell=doorbell).get(run).state == "completed"


class TestDescendants:
    def test_a_pause_reaches_all(self, world: World) -> None:
        run = begin(world)
        ids = family(world, run)
        world.operations.pause(run.id)
        assert [row(world, each).pause_requested for each in ids] == [True] * 3
        world.handlers["Do"] = one
        world.drive(run)
        # what had begun was done, and nothing else
        assert world.done == [("Do", {"n": 1})]
        world.operations.resume(run.id)
        assert world.drive(run).outputs == {"r": 5}

    def test_a_run_that_is_called_during_the_pause_is_paused(self, world: World) -> None:
        run = world.operations.submit("t.Branch", {"n": 1})
        task = _take(world, run.id)
        assert task.state is State.CLOSED or task.state is State.WAITING
        world.operations.pause(run.id)
        world.handlers["Do"] = one
        world.drive(run)
        (_, child) = family(world, run)
        assert row(world, child).pause_requested
        assert world.done == []
        world.operations.resume(run.id)
        assert world.drive(run).outputs == {"r": 3}

    def test_a_pause_that_comes_while_the_called_run_is_being_written(self, world: World) -> None:
        run = world.operations.submit("t.Branch", {"n": 1})
        _take(world, run.id)
        kernel, evaluator = world.kept.store.kernel, world.driver.evaluator
        (child,) = [task for task in kernel.find_tasks(state=State.READY) if str(task.id) != run.id]
        claim = kernel.take(evaluator._worker(), child.id)
        assert claim is not None
        turn = evaluator.evaluate(claim)
        assert not turn.run.pause_requested
        world.operations.pause(run.id)
        evaluator.commit(turn)
        assert row(world, child.id).pause_requested
        world.operations.resume(run.id)
        world.handlers["Do"] = one
        assert world.drive(run).outputs == {"r": 3}

    def test_a_cancel_reaches_all_at_once(self, world: World) -> None:
        run = begin(world)
        ids = family(world, run)
        world.operations.cancel(run.id, reason="enough")
        ended = [row(world, each) for each in ids]
        assert [each.state for each in ended] == ["canceled"] * 3
        assert all(each.error is not None and each.error["message"] == "enough" for each in ended)
        world.kept.advance(HOUR)
        world.handlers["Do"] = one
        world.drive(run)
        assert world.done == []


def _take(world: World, run: str) -> Task:
    """One advance of one run alone."""
    evaluator = world.driver.evaluator
    claim = world.kept.store.kernel.take(evaluator._worker(), TaskId(run))
    assert claim is not None
    evaluator.commit(evaluator.evaluate(claim))
    found = world.kept.store.kernel.get_task(TaskId(run))
    assert found is not None
    return found
