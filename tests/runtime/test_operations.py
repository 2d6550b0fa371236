from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest

from afl.kernel.model import CallStatus, TaskId
from afl.runtime.entities import Run
from afl.runtime.errors import (
    BadInputs,
    NotSkippable,
    RunCanceled,
    RunConflict,
    RunEnded,
    RunFailed,
    StillRunning,
    UnknownFacet,
    UnknownProgram,
    UnknownRun,
    UnknownStep,
)
from afl.runtime.views import state_word
from tests.runtime.driving import World, failing
from tests.runtime.kept import Kept

FLOW = """
namespace demo {
  event facet Fetch(url: String) => (body: String)
  event facet Note(text: String) => (id: Int = 7, at: String?)
  workflow Mirror(url: String) => (body: String) andThen {
    page = Fetch(url = $.url)
    note = Note(text = page.body)
    yield Mirror(body = page.body)
  }
  workflow Both(urls: [String]) => (bodies: [String]) andThen foreach url in $.urls {
    one = Mirror(url = $.url)
    yield Both(bodies = [one.body])
  }
  workflow Other(url: String) => () andThen { page = Fetch(url = $.url) }
}
"""


@pytest.fixture
def world(kept: Kept) -> World:
    world = World(kept)
    world.deploy(FLOW)
    world.handlers["Fetch"] = lambda url: {"body": url.upper()}
    world.handlers["Note"] = lambda text: {"id": len(text)}
    return world


class TestSubmit:
    def test_a_run_goes_to_its_end(self, world: World) -> None:
        run = world.run("demo.Mirror", {"url": "a"})
        assert (run.state, run.outputs) == ("completed", {"body": "A"})
        assert world.operations.result(run.id) == {"body": "A"}

    def test_labels_priority_and_key_are_kept(self, world: World) -> None:
        run = world.operations.submit(
            "demo.Mirror", {"url": "a"}, key="k", labels={"team": "x"}, priority=4
        )
        assert (run.key, run.labels, run.priority) == ("k", {"team": "x"}, 4)
        assert [each.id for each in world.operations.list(labels={"team": "x"})] == [run.id]

    def test_a_misspelt_workflow_is_refused_with_the_near_one(self, world: World) -> None:
        with pytest.raises(UnknownFacet, match=r"Did you mean `demo\.Mirror`\?"):
            world.operations.submit("demo.Miror", {"url": "a"})
        with pytest.raises(UnknownFacet, match=r"has no workflow `demo\.Fetch`"):
            world.operations.submit("demo.Fetch", {"url": "a"})

    def test_wrong_inputs_are_refused_by_name(self, world: World) -> None:
        with pytest.raises(BadInputs, match="did you mean `url`"):
            world.operations.submit("demo.Mirror", {"ulr": "a"})

    def test_a_program_that_is_not_deployed_is_refused(self, world: World) -> None:
        with pytest.raises(UnknownProgram, match="Deployed are `default`"):
            world.operations.submit("demo.Mirror", {"url": "a"}, program="shop")

    def test_attach_answers_with_the_run_that_has_the_key(self, world: World) -> None:
        first = world.operations.submit("demo.Mirror", {"url": "a"}, key="k")
        again = world.operations.submit("demo.Mirror", {"url": "b"}, key="k")
        assert again.id == first.id
        with pytest.raises(RunConflict, match=r"which is not `demo\.Other`"):
            world.operations.submit("demo.Other", {"url": "a"}, key="k")

    def test_reject_refuses_a_key_that_is_taken(self, world: World) -> None:
        world.operations.submit("demo.Mirror", {"url": "a"}, key="k", conflict="reject")
        with pytest.raises(RunConflict, match="taken by run"):
            world.operations.submit("demo.Mirror", {"url": "a"}, key="k", conflict="reject")

    def test_replace_cancels_the_run_and_takes_its_key(self, world: World) -> None:
        ops = world.operations
        first = ops.submit("demo.Mirror", {"url": "a"}, key="k")
        second = ops.submit("demo.Mirror", {"url": "b"}, key="k", conflict="replace")
        third = ops.submit("demo.Mirror", {"url": "c"}, key="k", conflict="replace")
        assert len({first.id, second.id, third.id}) == 3
        assert ops.get(first.id).state == ops.get(second.id).state == "canceled"
        assert ops.submit("demo.Mirror", {"url": "d"}, key="k").id == third.id
        assert world.drive(third).outputs == {"body": "C"}

    def test_replace_starts_another_where_the_first_has_ended(self, world: World) -> None:
        first = world.drive(world.operations.submit("demo.Mirror", {"url": "a"}, key="k"))
        second = world.operations.submit("demo.Mirror", {"url": "b"}, key="k", conflict="replace")
        assert world.drive(second).outputs == {"body": "B"}
        assert world.operations.get(first.id).state == "completed"

    def test_an_unknown_policy_is_refused(self, world: World) -> None:
        with pytest.raises(BadInputs, match="use `attach`, `reject`, `replace`"):
            world.operations.submit("demo.Mirror", {"url": "a"}, key="k", conflict="ignore")


class TestDeadlines:
    def test_a_run_that_passes_its_deadline_has_failed(self, world: World) -> None:
        del world.handlers["Fetch"]
        run = world.operations.submit("demo.Mirror", {"url": "a"}, deadline=timedelta(hours=1))
        world.drive(run)
        world.kept.advance(timedelta(hours=2))
        run = world.drive(run)
        assert run.state == "failed"
        assert run.error == {
            "type": "Timeout",
            "message": "The run did not end before its deadline.",
        }
        assert world.operations.list(state="running") == []

    def test_a_deadline_may_be_a_time(self, world: World) -> None:
        at = world.kept.store.now() + timedelta(hours=1)
        run = world.operations.submit("demo.Mirror", {"url": "a"}, deadline=at)
        task = world.kept.store.kernel.get_task(TaskId(run.id))
        assert task is not None
        assert task.deadline is not None
        assert abs(task.deadline - at) < timedelta(seconds=1)

    def test_impossible_deadlines_are_refused(self, world: World) -> None:
        with pytest.raises(BadInputs, match="has passed"):
            world.operations.submit("demo.Mirror", {"url": "a"}, deadline=timedelta(0))
        with pytest.raises(BadInputs, match="time zone"):
            world.operations.submit(
                "demo.Mirror",
                {"url": "a"},
                deadline=datetime(2040, 1, 1),  # noqa: DTZ001
            )


class TestReading:
    def test_an_unknown_run_is_refused(self, world: World) -> None:
        with pytest.raises(UnknownRun, match="afl runs list"):
            world.operations.get("00000000-0000-7000-8000-0000000000ff")

    def test_the_list_is_newest_first_and_paged(self, world: World) -> None:
        runs = [world.operations.submit("demo.Mirror", {"url": str(n)}).id for n in range(5)]
        first = world.operations.list(limit=2)
        assert [run.id for run in first] == runs[:2:-1]
        rest = world.operations.list(before=first[-1].id)
        assert [run.id for run in rest] == runs[2::-1]

    def test_waiting_gives_up_with_the_reason(self, world: World) -> None:
        del world.handlers["Fetch"]
        run = world.run("demo.Mirror", {"url": "a"})
        with pytest.raises(StillRunning, match=r"No live worker serves `demo\.Fetch`"):
            world.operations.result(run.id, timedelta(milliseconds=20))

    def test_the_result_of_a_failed_run_is_an_error_that_names_the_step(self, world: World) -> None:
        world.handlers["Fetch"] = failing("no such page")
        run = world.run("demo.Mirror", {"url": "a"})
        with pytest.raises(RunFailed, match="at `0/page`: ValueError: no such page"):
            world.operations.result(run.id)

    def test_the_tree_is_nested_and_paged(self, world: World) -> None:
        run = world.run("demo.Both", {"urls": [str(n) for n in range(12)]})
        tree = world.operations.tree(run.id)
        assert tree.next is None
        assert tree.root is not None
        (clause,) = tree.root.children
        assert [node.name for node in clause.children] == [str(n) for n in range(12)]
        assert {node.state for node in clause.children} == {"done"}
        pages, after = [], None
        while True:
            page = world.operations.tree(run.id, after=after, limit=7)
            pages.append(page)
            after = page.next
            if after is None:
                break
        steps = world.kept.store.get_steps_by_workflow(run.id)
        assert len(pages) == -(-len(steps) // 7)
        assert all(page.root is not None and page.root.path == "" for page in pages)

    def test_the_tree_tells_queued_from_running_and_waiting(self, world: World) -> None:
        world.deploy(
            """namespace demo {
              event facet Nobody() => ()
              workflow W() => () andThen {
                a = Nobody()
                b = afl.time.Sleep(duration = 1h)
              }
            }"""
        )
        run = world.run("demo.W")
        root = world.operations.tree(run.id).root
        assert root is not None
        assert {node.name: node.state for node in root.children[0].children} == {
            "a": "queued",
            "b": "waiting",
        }

    def test_an_export_has_everything(self, world: World) -> None:
        run = world.run("demo.Mirror", {"url": "a"})
        bundle = world.operations.export(run.id)
        assert json.loads(json.dumps(bundle)) == bundle
        assert bundle["format"] == "afl-run"
        assert isinstance(bundle["run"], dict)
        assert bundle["run"]["outputs"] == {"body": "A"}
        assert isinstance(bundle["steps"], list)
        assert isinstance(bundle["tasks"], list)
        assert isinstance(bundle["calls"], list)
        assert len(bundle["steps"]) == 5
        assert len(bundle["tasks"]) == 3
        assert {call["status"] for call in bundle["calls"] if isinstance(call, dict)} == {"ok"}


class TestCancel:
    def test_a_canceled_run_has_ended_and_its_tasks_go_down(self, world: World) -> None:
        del world.handlers["Fetch"]
        run = world.run("demo.Both", {"urls": ["a", "b"]})
        children = world.operations.list(parent=run.id)
        assert len(children) == 2
        run = world.operations.cancel(run.id, reason="not needed")
        assert (run.state, run.error) == ("canceled", {"type": "Canceled", "message": "not needed"})
        world.drive(run)
        assert {each.state for each in world.operations.list(parent=run.id)} == {"canceled"}
        tasks = world.kept.store.kernel.find_tasks()
        assert {task.state.value for task in tasks} == {"closed"}

    def test_canceling_twice_is_the_same_and_an_ended_run_is_refused(self, world: World) -> None:
        run = world.operations.submit("demo.Mirror", {"url": "a"})
        assert world.operations.cancel(run.id) == world.operations.cancel(run.id)
        with pytest.raises(RunCanceled, match="canceled"):
            world.operations.result(run.id)
        done = world.run("demo.Mirror", {"url": "a"})
        with pytest.raises(RunEnded, match="has completed already"):
            world.operations.cancel(done.id)

    def test_a_canceled_child_fails_the_step_of_its_caller(self, world: World) -> None:
        del world.handlers["Fetch"]
        run = world.run("demo.Both", {"urls": ["a"]})
        (child,) = world.operations.list(parent=run.id)
        world.operations.cancel(child.id)
        run = world.drive(run)
        assert run.state == "failed"
        assert run.error is not None
        assert (run.error["type"], run.error["step"]) == ("Canceled", "0/0/one")


class TestPause:
    def test_a_paused_run_starts_nothing_until_it_goes_on(self, world: World) -> None:
        fetch = world.handlers.pop("Fetch")
        run = world.run("demo.Mirror", {"url": "a"})
        run = world.operations.pause(run.id)
        assert state_word(run) == "paused"
        assert [each.id for each in world.operations.list(state="paused")] == [run.id]
        world.handlers["Fetch"] = fetch
        world.drive(run)
        assert [name for name, _ in world.done] == ["Fetch"]
        assert world.operations.why(run.id).command == f"afl runs resume {run.id}"
        world.operations.resume(run.id)
        assert world.drive(run).outputs == {"body": "A"}

    def test_a_run_that_has_not_begun_pauses_too(self, world: World) -> None:
        run = world.operations.submit("demo.Mirror", {"url": "a"})
        world.operations.pause(run.id)
        world.drive(run)
        assert world.done == []
        world.operations.resume(run.id)
        assert world.drive(run).state == "completed"

    def test_an_ended_run_is_refused(self, world: World) -> None:
        run = world.run("demo.Mirror", {"url": "a"})
        with pytest.raises(RunEnded, match="cannot be paused"):
            world.operations.pause(run.id)


class TestSteps:
    def waiting(self, world: World) -> Run:
        del world.handlers["Fetch"]
        return world.run("demo.Mirror", {"url": "a"})

    def test_a_step_can_be_given_its_result_once(self, world: World) -> None:
        run = self.waiting(world)
        assert world.operations.continue_step(run.id, "0/page", {"body": "x"})
        assert not world.operations.continue_step(run.id, "0/page", {"body": "y"})
        assert world.drive(run).outputs == {"body": "x"}

    def test_a_result_that_does_not_fit_is_refused_by_name(self, world: World) -> None:
        run = self.waiting(world)
        with pytest.raises(BadInputs, match=r"`demo\.Fetch\.body`: a String"):
            world.operations.continue_step(run.id, "0/page", {"body": 3})
        call = world.kept.store.kernel.find_call(TaskId(run.id), "0/page")
        assert call is not None
        assert call.status is CallStatus.OPEN

    def test_a_step_can_be_failed(self, world: World) -> None:
        run = self.waiting(world)
        assert world.operations.fail_step(run.id, "0/page", "gone", "Http404")
        run = world.drive(run)
        assert run.error == {"type": "Http404", "message": "gone", "step": "0/page"}

    def test_a_step_with_defaults_can_be_skipped(self, world: World) -> None:
        del world.handlers["Note"]
        run = world.run("demo.Mirror", {"url": "a"})
        assert world.operations.skip(run.id, "0/note")
        assert world.drive(run).state == "completed"
        steps = {s.path: s.returns for s in world.kept.store.get_steps_by_workflow(run.id)}
        assert steps["0/note"] == {"id": 7, "at": None}

    def test_a_step_whose_result_is_needed_cannot_be_skipped(self, world: World) -> None:
        run = self.waiting(world)
        with pytest.raises(NotSkippable, match="returns `body`"):
            world.operations.skip(run.id, "0/page")

    def test_an_unknown_step_is_refused(self, world: World) -> None:
        run = self.waiting(world)
        with pytest.raises(UnknownStep, match="afl runs tree"):
            world.operations.continue_step(run.id, "0/gone", {})


EVENTS = """
namespace demo {
  workflow Wait(key: String) => (answer: Json) andThen {
    got = afl.event.Wait(name = "paid", key = $.key)
    yield Wait(answer = got.payload)
  }
  workflow Limited() => (answer: Json) andThen {
    got = afl.event.Wait(name = "paid", timeout = 1h)
    yield Limited(answer = got.payload)
  }
  workflow Nap() => (done: Boolean?) andThen {
    a = afl.time.Sleep(duration = 90d)
    b = afl.time.Until(time = "2031-01-01T00:00:00Z") after a
    c = afl.time.Until(time = "2001-01-01T00:00:00Z") after b
    d = afl.time.Sleep(duration = 0s) after c
    yield Nap(done = true)
  }
  workflow BadTime(time: String) => () andThen { a = afl.time.Until(time = $.time) }
}
"""


class TestEvents:
    @pytest.fixture(autouse=True)
    def program(self, world: World) -> None:
        world.deploy(EVENTS)

    def test_an_event_is_taken_whether_it_comes_before_or_after_the_wait(
        self, world: World
    ) -> None:
        assert world.operations.emit("paid", "1", {"cents": 5})
        early = world.run("demo.Wait", {"key": "1"})
        assert early.outputs == {"answer": {"cents": 5}}
        late = world.run("demo.Wait", {"key": "2"})
        assert late.state == "running"
        world.operations.emit("paid", "2", 8)
        assert world.drive(late).outputs == {"answer": 8}
        tasks = world.kept.store.kernel.find_tasks()
        assert {task.state.value for task in tasks} == {"closed"}

    def test_an_event_is_taken_once(self, world: World) -> None:
        runs = [world.run("demo.Wait", {"key": "1"}) for _ in range(2)]
        assert world.operations.emit("paid", "1", "one", id="e1")
        assert not world.operations.emit("paid", "1", "one", id="e1")
        assert [world.drive(run).state for run in runs] == ["completed", "running"]

    def test_a_wait_ends_with_its_timeout(self, world: World) -> None:
        run = world.run("demo.Limited")
        world.kept.advance(timedelta(hours=2))
        run = world.drive(run)
        assert run.error is not None
        assert (run.state, run.error["type"]) == ("failed", "Timeout")
        world.operations.emit("paid", "", "kept for the next")
        assert world.run("demo.Limited").outputs == {"answer": "kept for the next"}

    def test_sleeping_takes_its_time(self, world: World) -> None:
        run = world.run("demo.Nap")
        world.kept.advance(timedelta(days=89))
        assert world.drive(run).state == "running"
        assert world.operations.why(run.id).answers[0].code.value == "timer"
        world.kept.advance(timedelta(days=2))
        assert world.drive(run).state == "running"
        world.kept.advance(timedelta(days=365))
        world.drive(run)
        for _ in range(3):
            world.kept.advance(timedelta(seconds=1))
            run = world.drive(run)
        assert (run.state, run.outputs) == ("completed", {"done": True})

    def test_a_time_that_is_none_fails_the_step(self, world: World) -> None:
        run = world.run("demo.BadTime", {"time": "tomorrow"})
        assert run.error is not None
        assert run.state == "failed"
        assert "`tomorrow` is not a time" in str(run.error["message"])


def test_the_queue_can_be_looked_at_and_dead_letters_driven_again(world: World) -> None:
    world.deploy(
        """namespace demo {
          event facet Shaky() => () with Retry(max_attempts = 2, delay = 1s)
          workflow W() => () andThen { a = Shaky() }
        }"""
    )
    world.handlers["Shaky"] = failing("no")
    run = world.run("demo.W")
    world.kept.advance(timedelta(seconds=2))
    run = world.drive(run)
    assert run.state == "failed"
    (dead,) = world.operations.dead_letters()
    assert dead.name == "demo.Shaky"
    assert world.operations.redrive(dead.id).redrives == dead.id
    assert list(world.operations.dead_letters()) == []
    names = [task.name for task in world.operations.tasks(run=run.id)]
    assert sorted(names) == ["afl:execute", "demo.Shaky", "demo.Shaky"]
    assert [worker.name for worker in world.operations.workers()] == ["driver"]
