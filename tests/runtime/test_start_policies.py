"""The policies of a workflow, when it is started and when it is called as a step."""

from __future__ import annotations

from datetime import timedelta

import pytest

from afl.kernel.doorbell import LocalDoorbell
from afl.kernel.model import State, Task, TaskId
from afl.runtime.entities import Run
from afl.runtime.operations import Operations
from tests.runtime.driving import World
from tests.runtime.kept import Kept

SECOND = timedelta(seconds=1)
FLOW = """
namespace t {
  event facet Do(n: Int) => (r: Int)
  workflow Timed(n: Int) => (r: Int) with Timeout(seconds = 30) andThen {
    a = Do(n = $.n)
    yield Timed(r = a.r)
  }
  workflow Far(n: Int) => (r: Int) with Queue(name = "gpu") with Priority(level = 7) andThen {
    a = Do(n = $.n)
    yield Far(r = a.r)
  }
  workflow Single(who: String) => (r: Int) with Concurrency(max = 1, key = $.who) andThen {
    a = Do(n = 1)
    yield Single(r = a.r)
  }
  workflow Calls() => (r: Int) andThen {
    far = Far(n = 1) with Priority(level = 3)
    timed = Timed(n = 1)
    one = Single(who = "a")
    yield Calls(r = far.r + timed.r + one.r)
  }
}
"""


@pytest.fixture
def world(kept: Kept) -> World:
    world = World(kept)
    world.deploy(FLOW)
    return world


def task(world: World, run: Run) -> Task:
    found = world.kept.store.kernel.get_task(TaskId(run.id))
    assert found is not None
    return found


def test_the_timeout_is_the_deadline_of_the_run(world: World) -> None:
    run = world.operations.submit("t.Timed", {"n": 1})
    started = task(world, run)
    assert started.deadline is not None
    assert started.deadline - started.created_at == 30 * SECOND
    world.drive(run)
    world.kept.advance(31 * SECOND)
    run = world.drive(run)
    assert run.error is not None
    assert (run.state, run.error["type"]) == ("failed", "Timeout")


def test_a_deadline_that_is_given_wins(world: World) -> None:
    run = world.operations.submit("t.Timed", {"n": 1}, deadline=timedelta(hours=2))
    started = task(world, run)
    assert started.deadline is not None
    assert started.deadline - started.created_at == timedelta(hours=2)


def test_the_queue_and_the_priority(world: World) -> None:
    run = world.operations.submit("t.Far", {"n": 1})
    assert (task(world, run).list, task(world, run).priority, run.priority) == ("gpu", 7, 7)
    run = world.operations.submit("t.Far", {"n": 1}, priority=0)
    assert (task(world, run).priority, run.priority) == (0, 0)
    run = world.operations.submit("t.Timed", {"n": 1})
    assert (task(world, run).list, task(world, run).priority) == ("default", 0)


def test_the_queue_of_the_workflow_is_rung(world: World) -> None:
    doorbell = LocalDoorbell()
    operations = Operations(world.kept.store, world.driver.evaluator, doorbell=doorbell)
    operations.submit("t.Timed", {"n": 1})
    assert not doorbell.wait(["gpu"], 0.0)
    operations.submit("t.Far", {"n": 1})
    assert doorbell.wait(["gpu"], 0.0)


def test_runs_with_the_same_key_wait_for_each_other(world: World) -> None:
    runs = [world.operations.submit("t.Single", {"who": who}) for who in ("a", "a", "b")]
    assert [task(world, run).state for run in runs] == [State.READY, State.QUEUED, State.READY]
    world.handlers["Do"] = lambda n: {"r": n}
    world.drive(runs[0])
    assert [world.operations.get(run.id).outputs for run in runs] == [{"r": 1}] * 3


def test_runs_that_are_made_again_keep_what_they_had(world: World) -> None:
    run = world.operations.submit("t.Far", {"n": 1}, priority=2)
    world.operations.cancel(run.id)
    again = world.operations.rerun(run.id)
    assert (task(world, again).list, again.priority) == ("gpu", 2)


def test_called_as_steps(world: World) -> None:
    run = world.drive(world.operations.submit("t.Calls"))
    tasks = world.kept.store.kernel.find_tasks()
    called = {
        each.input["workflow"]: each
        for each in tasks
        if str(each.id) != run.id and each.kind == "flow" and isinstance(each.input, dict)
    }
    assert (called["t.Far"].list, called["t.Far"].priority) == ("gpu", 3)
    timed = called["t.Timed"]
    assert timed.deadline is not None
    assert timed.deadline - timed.created_at == 30 * SECOND
    assert called["t.Single"].lane == "t.Single:a:0"
