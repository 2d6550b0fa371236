from __future__ import annotations

import re
from datetime import timedelta

import pytest

from afl.kernel.model import Json, TaskId, WorkerId, WorkerSpec
from afl.runtime.entities import Run
from afl.runtime.errors import UnknownStep
from afl.runtime.reasons import Answer, WhyCode
from tests.runtime.driving import World, failing
from tests.runtime.kept import Kept

FLOW = """
namespace demo {
  event facet Fetch(url: String) => (body: String)
  event facet Shaky() => () with Retry(max_attempts = 3, delay = 10s, jitter = false)
  event facet Alone(n: Int) => () with Concurrency(max = 1)
  event facet Elsewhere() => () with Queue(name = "gpu")
  event facet Approve(what: String) => (ok: Boolean) with Human(group = "finance", deadline = 2d)

  workflow One() => () andThen {
    a = Fetch(url = "x")
    b = Fetch(url = a.body)
  }
  workflow Retried() => () andThen { a = Shaky() }
  workflow Lane() => () andThen { a = Alone(n = 1)  b = Alone(n = 2) }
  workflow Gpu() => () andThen { a = Elsewhere() }
  workflow Person() => () andThen { a = Approve(what = "it") }
  workflow Both() => () andThen {
    a = afl.time.Sleep(duration = 3d)
    b = Approve(what = "it")
    c = Elsewhere()
  }
  workflow Event() => () andThen { a = afl.event.Wait(name = "paid", key = "7", timeout = 1h) }
  workflow Timer() => () andThen { a = afl.time.Sleep(duration = 3d) }
  workflow Child() => () andThen { a = One() }
  workflow Many() => () andThen foreach n in [1, 2, 3] limit 1 { a = Alone(n = $.n) }
  workflow Whens() => () andThen {
    a = Fetch(url = "x")
  } andThen when { case a.body == "y" => { b = Shaky() } case _ => { c = Shaky() } }
  workflow Failing() => () andThen {
    a = Fetch(url = "x")
    b = Fetch(url = a.body)
  }
}
"""


@pytest.fixture
def world(kept: Kept) -> World:
    world = World(kept)
    world.deploy(FLOW)
    return world


def serve(world: World, *names: str, slots: int = 1, lists: tuple[str, ...] = ("default",)) -> None:
    """A live worker that does nothing."""
    spec = WorkerSpec(WorkerId("idle"), "idle", handlers=names, slots=slots, lists=lists)
    world.kept.store.kernel.register(spec)


def answers(world: World, run: Run) -> dict[str | None, Answer]:
    return {answer.step: answer for answer in world.operations.why(run.id).answers}


def test_what_calls_for_somebody_is_told_before_what_goes_on_by_itself(world: World) -> None:
    told = world.operations.why(world.run("demo.Both").id).answers
    assert [answer.code for answer in told] == [WhyCode.NO_WORKER, WhyCode.PERSON, WhyCode.TIMER]


class TestNobody:
    def test_no_worker_serves_it_and_the_nearest_names_are_told(self, world: World) -> None:
        serve(world, "demo.Fech", "Other")
        run = world.run("demo.One")
        answer = answers(world, run)["0/a"]
        assert answer.code is WhyCode.NO_WORKER
        assert answer.sentence == (
            "No live worker serves `demo.Fetch`; the nearest names served are `demo.Fech`."
        )
        assert answer.command == "afl worker"

    def test_a_worker_on_another_queue_is_told(self, world: World) -> None:
        serve(world, "Elsewhere")
        answer = answers(world, world.run("demo.Gpu"))["0/a"]
        assert answer.code is WhyCode.NO_WORKER
        assert "on the queue `gpu`; there are some on `default`" in answer.sentence
        assert answer.command == "afl worker --list gpu"

    def test_nobody_advances_runs(self, world: World) -> None:
        world.kept.advance(timedelta(hours=1))
        run = world.operations.submit("demo.One")
        why = world.operations.why(run.id)
        assert why.sentence == "No live worker advances runs."

    def test_all_slots_are_taken(self, world: World) -> None:
        serve(world, "Fetch", slots=1)
        first, second = world.run("demo.One"), world.run("demo.One")
        call = world.kept.store.kernel.find_call(TaskId(first.id), "0/a")
        assert call is not None
        assert call.callee is not None
        world.kept.store.kernel.take(WorkerId("idle"), call.callee)
        assert answers(world, first)["0/a"].code is WhyCode.RUNNING
        answer = answers(world, second)["0/a"]
        assert answer.code is WhyCode.BUSY
        assert answer.sentence == "All 1 slots of the workers that serve `demo.Fetch` are taken."

    def test_a_worker_is_about_to_take_it(self, world: World) -> None:
        serve(world, "Fetch", slots=2)
        assert answers(world, world.run("demo.One"))["0/a"].code is WhyCode.QUEUED

    def test_its_worker_does_not_answer(self, world: World) -> None:
        serve(world, "Fetch")
        run = world.run("demo.One")
        call = world.kept.store.kernel.find_call(TaskId(run.id), "0/a")
        assert call is not None
        assert call.callee is not None
        world.kept.store.kernel.take(WorkerId("idle"), call.callee)
        world.kept.advance(timedelta(minutes=5))
        answer = answers(world, run)["0/a"]
        assert answer.code is WhyCode.WORKER_LOST
        assert "The worker `idle` has `demo.Fetch`" in answer.sentence

    def test_a_lane_is_held(self, world: World) -> None:
        run = world.run("demo.Lane")
        found = answers(world, run)
        held = [each for each in found.values() if each.code is WhyCode.LANE_HELD]
        assert len(held) == 1
        assert f"run {run.id} holds its place" in held[0].sentence
        assert held[0].command == f"afl runs why {run.id}"

    def test_it_is_tried_again(self, world: World) -> None:
        world.handlers["Shaky"] = failing("no line")
        answer = answers(world, world.run("demo.Retried"))["0/a"]
        assert answer.code is WhyCode.RETRY
        assert re.match(
            r"`demo\.Shaky` failed with ValueError: no line; attempt 2 of 3 is at 2030-01-01 ",
            answer.sentence,
        )
        assert answer.until is not None


class TestOthersFirst:
    def test_a_timer(self, world: World) -> None:
        answer = answers(world, world.run("demo.Timer"))["0/a"]
        assert answer.code is WhyCode.TIMER
        assert answer.sentence == "`0/a` sleeps until 2030-01-04 00:00:00+00:00."

    def test_an_event(self, world: World) -> None:
        answer = answers(world, world.run("demo.Event"))["0/a"]
        assert answer.code is WhyCode.EVENT
        assert answer.sentence.startswith(
            "`0/a` waits for the event `paid` with the key `7`, until 2030-01-01 01:00:00"
        )
        assert answer.command == "afl emit paid --key 7"

    def test_a_person(self, world: World) -> None:
        answer = answers(world, world.run("demo.Person"))["0/a"]
        assert answer.code is WhyCode.PERSON
        assert "a person of the group `finance`, until 2030-01-03" in answer.sentence
        assert answer.command == f"afl inbox answer {answer.detail['task']}"

    def test_a_child_run(self, world: World) -> None:
        run = world.run("demo.Child")
        (child,) = world.operations.list(parent=run.id)
        answer = answers(world, run)["0/a"]
        assert answer.code is WhyCode.CHILD_RUN
        assert answer.command == f"afl runs why {child.id}"
        assert answers(world, child)["0/a"].code is WhyCode.NO_WORKER

    def test_a_step_that_has_not_started_names_what_it_needs(self, world: World) -> None:
        run = world.run("demo.One")
        answer = answers(world, run)["0/b"]
        assert answer.code is WhyCode.UPSTREAM
        assert answer.sentence == "`0/b` has not started: it needs `0/a` first."
        assert world.operations.why(run.id, "0/b").answers == (answer,)

    def test_a_clause_that_has_not_started_names_what_it_needs(self, world: World) -> None:
        run = world.run("demo.Whens")
        answer = answers(world, run)["1"]
        assert answer.sentence == "`1` has not started: it needs `0/a` first."

    def test_iterations_wait_for_their_limit(self, world: World) -> None:
        answer = answers(world, world.run("demo.Many"))["0"]
        assert answer.code is WhyCode.LIMIT
        assert answer.sentence.startswith("2 of 3 iterations of `0` have not started")

    def test_a_step_waits_for_its_parts(self, world: World) -> None:
        run = world.run("demo.One")
        why = world.operations.why(run.id, "0")
        assert [answer.code for answer in why.answers] == [
            WhyCode.NO_WORKER,
            WhyCode.UPSTREAM,
            WhyCode.PARTS,
        ]


class TestEnded:
    def test_what_has_ended_says_how(self, world: World) -> None:
        world.handlers["Fetch"] = failing("404")
        run = world.run("demo.Failing")
        why = world.operations.why(run.id)
        assert why.sentence == "The run failed at `0/a`: ValueError: 404"
        assert why.command == f"afl runs retry {run.id}"
        skipped = world.operations.why(run.id, "0/b")
        assert skipped.answers[0].code is WhyCode.SKIPPED
        assert skipped.sentence == "`0/b` was skipped, because `0/a` failed."
        assert skipped.command == f"afl runs why {run.id} 0/a"
        assert world.operations.why(run.id, "0/a").sentence == "`0/a` failed: ValueError: 404"

    def test_a_completed_run(self, world: World) -> None:
        world.handlers["Fetch"] = lambda url: {"body": url}
        run = world.run("demo.One")
        assert world.operations.why(run.id).answers[0].code is WhyCode.DONE
        assert world.operations.why(run.id, "0/b").sentence == "`0/b` is done."

    def test_a_step_that_is_not_in_the_program_is_refused(self, world: World) -> None:
        run = world.run("demo.One")
        with pytest.raises(UnknownStep, match="did you mean `0/a`"):
            world.operations.why(run.id, "0/aa")


WAITING = ["One", "Retried", "Lane", "Gpu", "Person", "Event", "Timer", "Child", "Many", "Whens"]


@pytest.mark.parametrize("workflow", WAITING)
def test_every_open_step_of_every_waiting_run_has_an_answer(world: World, workflow: str) -> None:
    run = world.run(f"demo.{workflow}")
    assert run.state == "running"
    open_steps = [
        step.path for step in world.kept.store.get_steps_by_workflow(run.id) if not step.is_terminal
    ]
    assert open_steps
    for path in open_steps:
        why = world.operations.why(run.id, path)
        assert why.answers
        for answer in why.answers:
            assert answer.sentence.endswith(".")
            as_json: Json = answer.as_json()
            assert isinstance(as_json, dict)
            assert as_json["code"] == answer.code.value
