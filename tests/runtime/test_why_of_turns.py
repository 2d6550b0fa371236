"""Why a turn of an agent does not go on: its model, a budget, a person, a tool."""

from __future__ import annotations

from datetime import timedelta

import pytest

from afl.kernel.model import CallSpec, Commit, Json, Suspend, TaskId, TaskSpec, WorkerId, WorkerSpec
from afl.runtime.calls import BUDGETS, PEOPLE, TIMERS
from afl.runtime.reasons import Answer, WhyCode
from afl.runtime.task_reasons import TaskReasons
from tests.runtime.driving import World
from tests.runtime.kept import Kept

FLOW = """\
namespace demo {
  event facet Ask(q: String) => (a: String) prompt { template "{q}" }

  workflow One() => (a: String) andThen {
    asked = Ask(q = "x")
    yield One(a = asked.a)
  }
}
"""
TURNER = WorkerId("turner")


@pytest.fixture
def world(kept: Kept) -> World:
    world = World(kept)
    world.deploy(FLOW)
    return world


def why(world: World, key: str, task: TaskSpec, timeout: timedelta) -> Answer:
    """Why a run waits whose turn has made this call."""
    run = world.run("demo.One")
    kernel = world.kept.store.kernel
    call = kernel.find_call(TaskId(run.id), "0/asked")
    assert call is not None
    assert call.callee is not None
    kernel.register(WorkerSpec(TURNER, "turner", handlers=("demo.Ask",)))
    claim = kernel.take(TURNER, call.callee)
    assert claim is not None
    assert claim.task.kind == "turn"
    kernel.commit([Commit(claim.fence, Suspend(), calls=(CallSpec(key, task, timeout),))])
    (answer,) = world.operations.why(run.id, "0/asked").answers
    assert answer.step == "0/asked"
    return answer


def test_its_model_is_busy(world: World) -> None:
    answer = why(world, "busy:1", TaskSpec("timer", "busy", list=TIMERS), timedelta(minutes=2))
    assert answer.code is WhyCode.TIMER
    assert answer.sentence == (
        "The model of `demo.Ask` was busy; it is asked again at 2030-01-01 00:02:00+00:00."
    )


def test_a_budget_has_no_room(world: World) -> None:
    given: Json = {"budgets": [{"scope": "run", "key": "r"}]}
    wait = TaskSpec("budget", "budget", list=BUDGETS, input=given)
    answer = why(world, "budget:1", wait, timedelta(days=9))
    assert answer.code is WhyCode.BUDGET
    assert answer.sentence == (
        "`demo.Ask` waits for room in the budget of run r: what may be spent is spent or reserved."
    )
    assert answer.command == "afl cost budget set run r"
    assert answer.detail["budgets"] == [{"scope": "run", "key": "r"}]


def test_a_person_has_to_agree(world: World) -> None:
    given: Json = {"facet": "afl.Approve", "group": "ops", "form": {}}
    task = TaskSpec("human", "afl.Approve", list=PEOPLE, input=given)
    answer = why(world, "approve:1.0", task, timedelta(hours=1))
    assert answer.code is WhyCode.PERSON
    assert answer.sentence == (
        "`demo.Ask` waits for a person of the group `ops`, until 2030-01-01 01:00:00+00:00."
    )
    assert answer.command == f"afl inbox answer {answer.detail['task']}"


def test_nobody_serves_its_tool(world: World) -> None:
    answer = why(world, "1.0", TaskSpec("event", "demo.Search"), timedelta(hours=1))
    assert answer.code is WhyCode.NO_WORKER
    assert answer.sentence.startswith(
        "`demo.Ask` waits for its tool. No live worker serves `demo.Search`"
    )
    assert answer.command == "afl worker"


@pytest.mark.parametrize(
    ("task", "code", "said"),
    [
        (TaskSpec("timer", "afl:busy", list=TIMERS), WhyCode.TIMER, "`afl:busy` sleeps until "),
        (
            TaskSpec("human", "afl.Approve", list=PEOPLE, input={"facet": "afl.Approve"}),
            WhyCode.PERSON,
            "`afl.Approve` waits for a person, until ",
        ),
        (
            TaskSpec("budget", "afl:budget", list=BUDGETS),
            WhyCode.BUDGET,
            "`afl:budget` waits for room in the budget of its turn",
        ),
    ],
)
def test_a_task_that_no_worker_does_says_what_it_waits_for(
    world: World, task: TaskSpec, code: WhyCode, said: str
) -> None:
    why(world, "x", task, timedelta(hours=1))
    kernel = world.kept.store.kernel
    (found,) = [each for each in kernel.find_tasks() if each.name == task.name]
    answer = TaskReasons(world.kept.store).of_task(found)
    assert answer.code is code
    assert answer.sentence.startswith(said)
