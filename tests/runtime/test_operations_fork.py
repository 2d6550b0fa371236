from __future__ import annotations

import pytest

from afl.kernel.model import Json
from afl.runtime.entities import Run
from afl.runtime.errors import BadInputs, NotForkable, RunEnded, StillRunning, UnknownStep
from tests.runtime.driving import World, failing
from tests.runtime.kept import Kept

FLOW = """
namespace demo {
  event facet Load(name: String) => (rows: Int)
  event facet Count(rows: Int) => (total: Int)
  event facet Send(total: Int) => (id: String) with Effect(kind = irreversible)
  event facet Ring(name: String) => () with Effect(kind = irreversible)

  workflow Report(name: String) => (id: String) andThen {
    rung = Ring(name = $.name)
    load = Load(name = $.name)
    count = Count(rows = load.rows)
    sent = Send(total = count.total)
    yield Report(id = sent.id)
  }
  workflow Caught(name: String) => (id: String) andThen {
    load = Load(name = $.name) catch { yield Load(rows = 0) }
    sent = Send(total = load.rows ?? 0)
    last = Count(rows = 1) after sent
    yield Caught(id = sent.id)
  }
  workflow Outer(name: String) => (id: String) andThen {
    inner = Report(name = $.name)
    yield Outer(id = inner.id)
  }
  workflow Each(names: [String]) => (totals: [Int]) andThen foreach name in $.names {
    a = Load(name = $.name)
    b = Count(rows = a.rows)
    yield Each(totals = [b.total])
  }
  workflow Halves(name: String) => (total: Int) andThen {
    a = Load(name = $.name)
    b = Count(rows = a.rows)
    yield Halves(total = b.total)
  }
}
"""


@pytest.fixture
def world(kept: Kept) -> World:
    world = World(kept)
    world.deploy(FLOW)
    world.handlers.update(
        Load=lambda name: {"rows": len(name)},
        Count=lambda rows: {"total": rows + 1},
        Send=lambda total: {"id": f"m{total}"},
        Ring=lambda name: {},
    )
    return world


def done(world: World) -> list[str]:
    names = [name for name, _ in world.done]
    world.done.clear()
    return sorted(names)


def failed(world: World, workflow: str = "demo.Report", step: str = "Count") -> Run:
    """A run that has failed at a facet, which works from then on."""
    works = world.handlers[step]
    world.handlers[step] = failing("no")
    run = world.run(workflow, {"name": "abc"})
    assert run.state == "failed"
    world.handlers[step] = works
    world.done.clear()
    return run


class TestRetry:
    def test_only_what_failed_and_what_waited_for_it_is_done(self, world: World) -> None:
        run = failed(world)
        again = world.drive(world.operations.retry(run.id))
        assert again.outputs == {"id": "m4"}
        assert again.id != run.id
        assert again.fork is not None
        assert (again.fork.run, again.fork.redo) == (run.id, ("0/count",))
        assert done(world) == ["Count", "Send"]
        why = world.operations.why(again.id, "0/load")
        assert why.sentence == f"`0/load` is done (its result was taken from {run.id})."

    def test_one_step_can_be_named(self, world: World) -> None:
        run = failed(world)
        assert world.drive(world.operations.retry(run.id, "0/count")).state == "completed"
        with pytest.raises(RunEnded, match="has not failed"):
            world.operations.retry(run.id, "0/load")
        with pytest.raises(UnknownStep, match="no step `0/cuont`"):
            world.operations.retry(run.id, "0/cuont")

    def test_of_many_iterations_only_the_failed_one_is_done(self, world: World) -> None:
        def count(rows: int) -> dict[str, Json]:
            if rows == 2:
                raise ValueError("no")
            return {"total": rows + 1}

        works, world.handlers["Count"] = world.handlers["Count"], count
        run = world.run("demo.Each", {"names": ["a", "ab", "abc"]})
        assert run.state == "failed"
        world.handlers["Count"] = works
        done(world)
        again = world.drive(world.operations.retry(run.id))
        assert again.outputs == {"totals": [2, 3, 4]}
        assert done(world) == ["Count"]

    def test_a_retry_of_a_retry_takes_over_what_the_first_took_over(self, world: World) -> None:
        run = failed(world)
        works, world.handlers["Count"] = world.handlers["Count"], failing("still no")
        again = world.drive(world.operations.retry(run.id))
        assert again.state == "failed"
        world.handlers["Count"] = works
        done(world)
        assert world.drive(world.operations.retry(again.id)).outputs == {"id": "m4"}
        assert done(world) == ["Count", "Send"]

    def test_a_run_that_goes_on_is_refused(self, world: World) -> None:
        del world.handlers["Count"]
        run = world.run("demo.Report", {"name": "abc"})
        with pytest.raises(StillRunning, match="Cancel it with"):
            world.operations.retry(run.id)

    def test_a_run_that_has_completed_is_refused(self, world: World) -> None:
        run = world.run("demo.Report", {"name": "abc"})
        with pytest.raises(RunEnded, match="nothing to retry"):
            world.operations.retry(run.id)

    def test_a_failed_step_that_cannot_be_taken_back_needs_force(self, world: World) -> None:
        run = failed(world, step="Send")
        with pytest.raises(NotForkable, match=r"`0/sent` \(demo\.Send\)"):
            world.operations.retry(run.id)
        assert world.drive(world.operations.retry(run.id, force=True)).outputs == {"id": "m4"}
        assert done(world) == ["Send"]

    def test_a_finished_step_that_may_get_other_arguments_needs_force(self, world: World) -> None:
        world.handlers["Load"], works = failing("no"), world.handlers["Load"]
        world.handlers["Count"], counts = failing("no"), world.handlers["Count"]
        run = world.run("demo.Caught", {"name": "abc"})
        assert run.error is not None
        assert (run.state, run.error["step"]) == ("failed", "0/last")
        world.handlers.update(Load=works, Count=counts)
        with pytest.raises(NotForkable, match="`0/sent`"):
            world.operations.retry(run.id)
        done(world)
        assert world.drive(world.operations.retry(run.id, force=True)).outputs == {"id": "m3"}
        assert done(world) == ["Count", "Load", "Send"]

    def test_what_a_failed_child_has_done_counts_too(self, world: World) -> None:
        run = failed(world, "demo.Outer")
        with pytest.raises(NotForkable, match=r"`0/inner:0/rung` \(demo\.Ring\)"):
            world.operations.retry(run.id)
        assert world.drive(world.operations.retry(run.id, force=True)).outputs == {"id": "m4"}

    def test_a_child_is_retried_through_its_caller(self, world: World) -> None:
        run = failed(world, "demo.Outer")
        (child,) = world.operations.list(parent=run.id)
        with pytest.raises(NotForkable, match=f"afl runs retry {run.id}"):
            world.operations.retry(child.id)

    def test_a_canceled_run_can_be_finished(self, world: World) -> None:
        count = world.handlers.pop("Count")
        run = world.run("demo.Halves", {"name": "abc"})
        world.operations.cancel(run.id)
        world.handlers["Count"] = count
        done(world)
        assert world.drive(world.operations.retry(run.id)).outputs == {"total": 4}
        assert done(world) == ["Count"]


class TestFork:
    def test_from_a_step_with_other_inputs(self, world: World) -> None:
        run = world.run("demo.Halves", {"name": "abc"})
        done(world)
        fork = world.drive(world.operations.fork(run.id, "0/b", {"rows": 10}))
        assert fork.outputs == {"total": 11}
        assert done(world) == ["Count"]
        assert world.operations.get(run.id).outputs == {"total": 4}

    def test_from_the_start_with_other_inputs_redoes_what_changes(self, world: World) -> None:
        run = world.run("demo.Halves", {"name": "abc"})
        done(world)
        same = world.drive(world.operations.fork(run.id, inputs={"name": "xyz"}))
        assert same.outputs == {"total": 4}
        assert done(world) == ["Load"]

    def test_what_depends_on_the_step_and_cannot_be_taken_back_needs_force(
        self, world: World
    ) -> None:
        run = world.run("demo.Report", {"name": "abc"})
        done(world)
        with pytest.raises(NotForkable) as refused:
            world.operations.fork(run.id, "0/count", {"rows": 9})
        assert "`0/sent`" in str(refused.value)
        assert "`0/rung`" not in str(refused.value)
        assert done(world) == []
        fork = world.operations.fork(run.id, "0/count", {"rows": 9}, force=True)
        assert world.drive(fork).outputs == {"id": "m10"}
        assert done(world) == ["Count", "Send"]

    def test_wrong_inputs_are_refused_by_name(self, world: World) -> None:
        run = world.run("demo.Halves", {"name": "abc"})
        with pytest.raises(BadInputs, match="did you mean `rows`"):
            world.operations.fork(run.id, "0/b", {"row": 1})
        with pytest.raises(BadInputs, match="calls no facet"):
            world.operations.fork(run.id, "0", {"row": 1})

    def test_labels_go_along_and_keys_do_not(self, world: World) -> None:
        run = world.operations.submit(
            "demo.Halves", {"name": "a"}, key="k", labels={"team": "x"}, priority=3
        )
        fork = world.operations.fork(world.drive(run).id, "0/a")
        assert (fork.labels, fork.key, fork.priority) == ({"team": "x"}, None, 3)


def test_a_rerun_does_everything_again(world: World) -> None:
    run = world.run("demo.Halves", {"name": "abc"})
    done(world)
    again = world.drive(world.operations.rerun(run.id))
    assert (again.inputs, again.outputs, again.fork) == ({"name": "abc"}, {"total": 4}, None)
    assert done(world) == ["Count", "Load"]
