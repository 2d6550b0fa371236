"""`Timeout` on what is made of steps: the time of the whole."""

from __future__ import annotations

from datetime import timedelta

import pytest

from afl.kernel.model import CallStatus, Json, State, TaskId
from afl.runtime.entities import Run
from afl.runtime.states import StepState
from tests.runtime.driving import World
from tests.runtime.kept import HOUR, Kept

SECOND = timedelta(seconds=1)
FLOW = """
namespace t {
  event facet Do(n: Int) => (r: Int)
  event facet Clean(n: Int) => (r: Int)
  event facet Wide(n: Int) => (r: Int)

  facet Both(n: Int) => (r: Int) with Timeout(seconds = 10) andThen {
    a = Do(n = $.n)
    b = Do(n = a.r)
    yield Both(r = b.r)
  }
  facet Guarded(n: Int) => (r: Int) with Timeout(seconds = 10)
    catch { c = Clean(n = $.n) yield Guarded(r = c.r) }
  andThen {
    a = Do(n = $.n)
    yield Guarded(r = a.r)
  }
  facet Each(ns: [Int]) => (rs: [Int]) with Timeout(seconds = 10)
  andThen foreach n in $.ns limit 1 {
    a = Wide(n = $.n)
    yield Each(rs = [a.r])
  }
  facet Deep(n: Int) => (r: Int) with Timeout(minutes = 1) andThen {
    s = Sub(n = $.n)
    w = afl.event.Wait(name = "go", key = "1")
    yield Deep(r = s.r)
  }
  facet Login(n: Int) => (token: Int) with Timeout(seconds = 5) andThen {
    a = Do(n = $.n)
    yield Login(token = a.r)
  }

  workflow Sub(n: Int) => (r: Int) andThen { a = Do(n = $.n) yield Sub(r = a.r) }

  workflow Plain() => (r: Int) andThen { x = Both(n = 1) yield Plain(r = x.r) }
  workflow AtCall() => (r: Int) andThen {
    x = Both(n = 1) with Timeout(hours = 1)
    yield AtCall(r = x.r)
  }
  workflow Caught() => (r: Int) andThen {
    x = Both(n = 1) catch { yield Both(r = 0 - 1) }
    yield Caught(r = x.r ?? 0)
  }
  workflow ByFacet() => (r: Int) andThen { x = Guarded(n = 1) yield ByFacet(r = x.r) }
  workflow Hasty() => (r: Int) with FailFast() andThen {
    x = Both(n = 1) catch { c = Clean(n = 1) yield Both(r = c.r) } andThen {
      a = Do(n = 1)
      yield Both(r = a.r)
    }
    yield Hasty(r = x.r ?? 0)
  }
  workflow Foreach() => (rs: [Int]) andThen { x = Each(ns = [1, 2, 3]) yield Foreach(rs = x.rs) }
  workflow Nested() => (r: Int) andThen { x = Deep(n = 1) yield Nested(r = x.r) }
  workflow Mixed() => (r: Int) with Login(n = 3) as login andThen { yield Mixed(r = $.login.token) }
  workflow Beside() => (r: Int) andThen {
    x = Both(n = 1) catch { yield Both(r = 0) }
    y = Clean(n = 2)
    yield Beside(r = (x.r ?? 0) + y.r)
  }
}
"""


@pytest.fixture
def world(kept: Kept) -> World:
    world = World(kept)
    world.deploy(FLOW)
    world.handlers["Clean"] = lambda n: {"r": n * 100}
    return world


def one(n: int) -> dict[str, Json]:
    return {"r": n + 1}


def begin(world: World, workflow: str) -> Run:
    return world.drive(world.operations.submit(workflow))


def later(world: World, run: Run, by: timedelta) -> Run:
    world.kept.advance(by)
    return world.drive(run)


def states(world: World, run: Run) -> dict[str, str]:
    return {row.path: row.state for row in world.kept.store.get_steps_by_workflow(run.id)}


def test_what_takes_too_long_fails_with_all_that_is_below(world: World) -> None:
    run = begin(world, "t.Plain")
    assert later(world, run, 9 * SECOND).state == "running"
    run = later(world, run, 2 * SECOND)
    assert run.state == "failed"
    assert run.error == {
        "type": "Timeout",
        "message": "`t.Both` took longer than its time.",
        "step": "0/x",
    }
    rows = {row.path: row for row in world.kept.store.get_steps_by_workflow(run.id)}
    assert all(row.is_terminal for row in rows.values())
    assert rows["0/x/0/a"].error is not None
    assert rows["0/x/0/a"].error["type"] == "Canceled"


def test_what_is_done_in_time_is_left_alone(world: World) -> None:
    world.handlers["Do"] = one
    run = begin(world, "t.Plain")
    assert (run.state, run.outputs) == ("completed", {"r": 3})
    # the timer has kept nothing open, and the sweep has taken it away
    timer = world.kept.store.kernel.find_call(TaskId(run.id), "0/x#timeout")
    assert timer is not None
    assert timer.callee is not None
    task = world.kept.store.kernel.get_task(timer.callee)
    assert task is not None
    assert task.state is State.CLOSED
    assert later(world, run, HOUR).outputs == {"r": 3}


def test_a_timer_of_a_step_that_has_ended_changes_nothing(world: World) -> None:
    world.handlers["Do"] = one
    del world.handlers["Clean"]
    run = begin(world, "t.Beside")
    before = states(world, run)
    assert later(world, run, HOUR).state == "running"
    assert states(world, run) == before
    world.handlers["Clean"] = one
    assert world.drive(run).outputs == {"r": 6}


def test_the_work_below_is_stopped_while_the_run_goes_on(world: World) -> None:
    del world.handlers["Clean"]
    run = later(world, begin(world, "t.Beside"), 11 * SECOND)
    assert run.state == "running"
    call = world.kept.store.kernel.find_call(TaskId(run.id), "0/x/0/a")
    assert call is not None
    assert call.status is CallStatus.CANCELED
    assert [task.name for task in world.driver.unserved()] == ["t.Clean"]
    world.handlers["Clean"] = one
    assert world.drive(run).outputs == {"r": 3}


def test_a_catch_at_the_step_takes_over(world: World) -> None:
    run = later(world, begin(world, "t.Caught"), 11 * SECOND)
    assert (run.state, run.outputs) == ("completed", {"r": -1})


def test_an_answer_that_comes_together_with_the_end_of_the_time(world: World) -> None:
    """What ends because the time is over halts nothing: the catch is not part of it."""
    run = begin(world, "t.Hasty")
    call = world.kept.store.kernel.find_call(TaskId(run.id), "0/x/0/a")
    assert call is not None
    world.kept.store.kernel.reply(call.id, CallStatus.OK, {"r": 1})
    run = later(world, run, 11 * SECOND)
    assert (run.state, run.outputs) == ("completed", {"r": 100})


def test_the_timeout_of_the_call_wins(world: World) -> None:
    run = begin(world, "t.AtCall")
    assert later(world, run, 30 * SECOND).state == "running"
    assert later(world, run, HOUR).state == "failed"


def test_the_catch_of_the_facet_takes_over(world: World) -> None:
    run = later(world, begin(world, "t.ByFacet"), 11 * SECOND)
    assert (run.state, run.outputs) == ("completed", {"r": 100})


def test_iterations_that_have_not_started_never_do(world: World) -> None:
    run = later(world, begin(world, "t.Foreach"), 11 * SECOND)
    assert run.state == "failed"
    world.handlers["Wide"] = one
    world.drive(run)
    assert world.done == []
    assert states(world, run)["0/x/0"] == StepState.STATEMENT_ERROR


def test_runs_and_waits_below_end_too(world: World) -> None:
    run = begin(world, "t.Nested")
    (child,) = world.operations.list(parent=run.id)
    run = later(world, run, 61 * SECOND)
    assert run.error is not None
    assert (run.state, run.error["type"]) == ("failed", "Timeout")
    assert world.operations.get(child.id).state == "canceled"
    # an event that comes now is for the next that waits
    world.operations.emit("go", "1", None)
    world.handlers["Do"] = one
    assert begin(world, "t.Nested").outputs == {"r": 2}


def test_a_mixin_that_runs_as_a_step_has_a_time(world: World) -> None:
    run = begin(world, "t.Mixed")
    run = later(world, run, 6 * SECOND)
    assert run.error is not None
    assert (run.state, run.error["type"]) == ("failed", "Timeout")
    assert run.error["step"] == "with/login"
    world.handlers["Do"] = one
    assert begin(world, "t.Mixed").outputs == {"r": 4}


def test_an_answer_that_comes_after_the_time_changes_nothing(world: World) -> None:
    run = later(world, begin(world, "t.Beside"), 11 * SECOND)
    assert run.outputs == {"r": 200}


def test_time_that_ends_during_a_pause_counts_after_it(world: World) -> None:
    run = begin(world, "t.Plain")
    world.operations.pause(run.id)
    assert later(world, run, HOUR).state == "running"
    world.operations.resume(run.id)
    assert world.drive(run).state == "failed"
