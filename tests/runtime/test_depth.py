"""Workflows that call each other: how deep, into which lane, and what comes back beside outputs."""

from __future__ import annotations

import pytest

from afl.kernel.model import MAX_DEPTH, Json, TaskId
from afl.runtime.entities import Run
from afl.runtime.handlers.completion import MAX_RUN_DEPTH
from tests.runtime.driving import World
from tests.runtime.kept import Kept

FLOW = """
namespace t {
  event facet Do(n: Int) => (r: Int)

  workflow Down(n: Int) => (r: Int) andThen when {
    case $.n == 0 => { a = Do(n = 1) yield Down(r = a.r) }
    case _ => { d = Down(n = $.n - 1) yield Down(r = d.r + 1) }
  }
  workflow Endless(n: Int) => (r: Int) andThen when {
    case $.n < 0 => { yield Endless(r = 0) }
    case _ => {
      e = Endless(n = $.n + 1) catch { yield Endless(r = 0) }
      yield Endless(r = (e.r ?? 0) + 1)
    }
  }
  workflow Alone(n: Int) => (r: Int) with Concurrency(max = 1) andThen when {
    case $.n == 0 => { yield Alone(r = 0) }
    case _ => { a = Alone(n = $.n - 1) yield Alone(r = a.r) }
  }
  workflow Between(n: Int) => (r: Int) andThen { a = Alone(n = $.n) yield Between(r = a.r) }
  workflow Above(n: Int) => (type: String) with Concurrency(max = 1, key = "above") andThen when {
    case $.n == 0 => { yield Above(type = "none") }
    case _ => { b = Around(n = $.n - 1) yield Above(type = b.type) }
  }
  workflow Around(n: Int) => (type: String) andThen {
    c = Above(n = $.n) catch { yield Above(type = error.type) }
    yield Around(type = c.type ?? "")
  }

  event facet Login(user: String) => (token: String)
  workflow Inner(user: String) => (o: String) with Login(user = $.user) as login andThen {
    a = Do(n = 1)
    yield Inner(o = $.login.token) with Login(token = $.login.token ++ "!")
  }
  workflow Outer() => (o: String, token: String, user: String) andThen {
    i = Inner(user = "me")
    yield Outer(o = i.o, token = i.login.token, user = i.login.user)
  }
  workflow Failing() => (o: String) andThen {
    i = Inner(user = "me")
    b = Do(n = 7)
    yield Failing(o = i.login.token ++ b.r)
  }
}
"""


def do(n: int) -> dict[str, Json]:
    if n == 7:
        raise ValueError("seven")
    return {"r": n}


@pytest.fixture
def world(kept: Kept) -> World:
    world = World(kept)
    world.deploy(FLOW)
    world.handlers["Do"] = do
    world.handlers["Login"] = lambda user: {"token": user.upper()}
    return world


def failure(run: Run) -> tuple[str, Json]:
    assert run.error is not None
    return run.state, run.error["type"]


def test_workflows_nest_as_deep_as_the_kernel_allows(world: World) -> None:
    assert MAX_RUN_DEPTH == MAX_DEPTH - 2
    run = world.run("t.Down", {"n": MAX_RUN_DEPTH})
    assert (run.state, run.outputs) == ("completed", {"r": MAX_RUN_DEPTH + 1})


def test_one_deeper_fails_that_step(world: World) -> None:
    run = world.run("t.Down", {"n": MAX_RUN_DEPTH + 1})
    assert failure(run) == ("failed", "TooDeep")


def test_a_catch_at_the_step_sees_it(world: World) -> None:
    run = world.run("t.Endless", {"n": 0})
    assert (run.state, run.outputs) == ("completed", {"r": MAX_RUN_DEPTH + 1})


@pytest.mark.parametrize("workflow", ["t.Alone", "t.Between"])
def test_a_call_into_the_lane_of_a_run_that_waits_for_it_fails(world: World, workflow: str) -> None:
    assert world.run(workflow, {"n": 0}).outputs == {"r": 0}
    assert failure(world.run(workflow, {"n": 1})) == ("failed", "LaneCycle")


def test_a_catch_sees_the_cycle_too(world: World) -> None:
    run = world.run("t.Above", {"n": 1})
    assert (run.state, run.outputs) == ("completed", {"type": "LaneCycle"})
    # the lane is free again
    assert world.run("t.Above", {"n": 1}).state == "completed"


def test_what_a_called_workflow_yields_to_a_mixin_is_read_outside(world: World) -> None:
    run = world.run("t.Outer")
    assert run.outputs == {"o": "ME", "token": "ME!", "user": "me"}
    (inner,) = world.operations.list(parent=run.id)
    assert inner.outputs == {"o": "ME"}


def test_a_workflow_started_by_itself_answers_with_its_outputs(world: World) -> None:
    run = world.run("t.Inner", {"user": "me"})
    assert run.outputs == {"o": "ME"}
    task = world.kept.store.kernel.get_task(TaskId(run.id))
    assert task is not None
    assert task.result == {"o": "ME"}


def test_a_fork_takes_over_what_was_yielded_to_a_mixin(world: World) -> None:
    run = world.run("t.Failing")
    assert failure(run) == ("failed", "ValueError")
    world.done.clear()
    world.handlers["Do"] = lambda n: {"r": n}
    again = world.drive(world.operations.retry(run.id))
    assert again.outputs == {"o": "ME!7"}
    assert world.done == [("Do", {"n": 7})]
