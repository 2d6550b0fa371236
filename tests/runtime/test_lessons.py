"""What has broken engines of this kind before, each as a test that it does not break this one.

The numbers are those of the list of lessons that the design was made from; lesson 3, on cost, is in
`test_machine_size`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from afl.ir import model as ir
from afl.kernel.errors import Fenced
from afl.kernel.model import ClaimRequest, Commit, Json, Suspend, TaskId
from afl.runtime.errors import UnknownFacet, UnknownProgram, UnknownStep
from afl.runtime.evaluator import Evaluator
from afl.runtime.states import RunState
from afl.runtime.step import ROOT, step_id
from tests.runtime.conformance.driver import (
    COMPLETED,
    ERROR,
    Answer,
    Driver,
    Failure,
    compiled,
    failing,
    given,
)
from tests.runtime.kept import Kept, begin, save, step

HEAD = """
  event facet Get(n: Long) => (r: Long)
  event facet Other(n: Long) => (r: Long)
  facet Keep(n: Long)
"""
ANSWERS: dict[str, Answer] = {
    "Get": lambda params: {"r": params["n"]},
    "Other": lambda params: {"r": params["n"]},
}
TWO = "workflow W() => (o: Long) andThen { a = Get(n = 1) b = Get(n = 2) yield W(o = a.r + b.r) }"


def drive(kept: Kept, body: str, evaluators: int = 2, **answers: Answer) -> Driver:
    text = f"namespace t {{ {HEAD} {body} }}"
    return Driver(kept.store, text, {**ANSWERS, **answers}, evaluators=evaluators)


# The machine


def test_01_two_workers_that_finish_two_branches_at_once_make_no_step_twice(kept: Kept) -> None:
    """One run, one writer: the second worker finds the flow task taken, and nothing is lost."""
    driver = drive(kept, TWO)
    run = driver.pause().run.id
    first, second = driver.claim()
    one, other = Evaluator(kept.store), Evaluator(kept.store)
    driver.answer(first)
    claim = driver.claim_flow()
    turn = one.evaluate(claim)
    driver.answer(second)  # while the first branch is being taken in
    assert kept.store.kernel.claim(ClaimRequest(driver.worker(), ("afl:execute",))) == []
    one.commit(turn)
    driver.evaluate(other, driver.claim_flow())
    played = driver.played(run)
    assert (played.status, played.outputs) == (COMPLETED, {"o": 3})
    assert [*played.steps] == ["", "0", "0/a", "0/b", "0/yield-0"]


def test_01_a_worker_that_was_given_up_cannot_write(kept: Kept) -> None:
    """The fence is checked where the rows are written: a late turn changes neither."""
    driver = drive(kept, TWO)
    run = driver.pause().run.id
    driver.answer_all()
    stale = Evaluator(kept.store)
    worker = driver.worker(lease=timedelta(seconds=1))
    turn = stale.evaluate(driver.claim_flow(worker))
    kept.advance(timedelta(seconds=5))
    kept.store.kernel.sweep()
    assert driver.advance()
    before = driver.played(run)
    with pytest.raises(Fenced):
        stale.commit(turn)
    assert driver.played(run).steps == before.steps
    assert before.outputs == {"o": 3}


def test_02_an_answer_that_comes_while_the_run_is_busy_is_not_dropped(kept: Kept) -> None:
    """The wake-up is a row: whoever lets go of the run finds it."""
    driver = drive(kept, TWO)
    run = driver.pause().run.id
    first, second = driver.claim()
    driver.answer(first)
    claim = driver.claim_flow()
    driver.answer(second)
    # the worker gives the run back without having looked at anything
    kept.store.kernel.commit([Commit(claim.fence, Suspend())])
    assert driver.finish(run).outputs == {"o": 3}


def test_04_no_wake_up_is_lost_between_blocks(kept: Kept) -> None:
    """Steps that end in any order, in blocks that wait for each other, by many workers."""
    text = """workflow W(xs: [Long]) => (ys: [Long], z: Long) andThen {
      a = Get(n = 1) b = Get(n = a.r)
      outer = Keep(n = b.r) andThen { c = Get(n = late.r) yield W(z = c.r) }
      late = Get(n = b.r + 1)
    } andThen foreach x in $.xs {
      d = Get(n = $.x)
      e = Get(n = d.r + late.r)
      f = Keep(n = 1) andThen when {
        case e.r > 3 => { g = Get(n = e.r + b.r) yield W(ys = [g.r]) }
        case _ => { yield W(ys = [late.r]) }
      }
    }"""
    for seed in range(6):
        driver = Driver(
            kept.store,
            f"namespace t {{ {HEAD} {text} }}",
            ANSWERS,
            order="chance",
            seed=seed,
            workers=4,
        )
        assert driver.play(xs=[1, 2, 3]).outputs == {"ys": [2, 5, 6], "z": 2}


def test_05_every_state_acts_once(kept: Kept) -> None:
    """Neither an answer nor a second evaluation makes a step call again."""
    driver = drive(kept, TWO)
    run = driver.pause().run.id
    driver.answer(driver.claim(n=1)[0])
    driver.advance()
    driver.finish(run)
    steps = Counter(str(given(task)["step"]) for task in driver.tasks(run))
    assert steps == {"0/a": 1, "0/b": 1}


def test_06_a_crash_between_the_work_and_its_answer_leaves_the_work_to_another(kept: Kept) -> None:
    """The result, the end of the task and the wake-up are one transaction: all of it or nothing."""
    driver = drive(kept, TWO)
    run = driver.pause().run.id
    (lost,) = driver.claim(driver.worker(lease=timedelta(seconds=1)), n=1)
    close = driver.close_of(lost.task)  # the work is done, and then the worker dies
    kept.advance(timedelta(seconds=5))
    kept.store.kernel.sweep()
    claims = driver.claim()
    assert lost.task.id in {claim.task.id for claim in claims}
    with pytest.raises(Fenced):
        kept.store.kernel.commit([Commit(lost.fence, close)])
    for claim in claims:
        driver.answer(claim)
    played = driver.finish(run)
    assert played.outputs == {"o": 3}
    assert len(played.tasks) == 2


def test_06_a_crash_before_the_commit_of_a_turn_leaves_it_to_another(kept: Kept) -> None:
    """What was not committed has not happened."""
    driver = drive(kept, TWO)
    run = driver.start()
    worker = driver.worker(lease=timedelta(seconds=1))
    Evaluator(kept.store).evaluate(driver.claim_flow(worker))
    assert driver.played(run).steps == {}
    kept.advance(timedelta(seconds=5))
    kept.store.kernel.sweep()
    assert driver.finish(run).outputs == {"o": 3}


def test_07_everything_that_is_needed_to_go_on_is_stored(kept: Kept) -> None:
    """A new process for every claim knows as much as one that was there from the start."""
    driver = drive(
        kept,
        """workflow W() => (o: [Long]) andThen { a = Get(n = 1) }
        andThen foreach x in [a.r, 2, 3] limit 1 {
          b = Get(n = $.x) catch { yield Get(r = 0) }
          yield W(o = [b.r])
        } catch { yield W(o = [9]) }""",
        evaluators=0,
        Get=lambda params: failing()(params) if params["n"] == 2 else {"r": params["n"]},
    )
    assert driver.play().outputs == {"o": [1, 0, 3]}


def test_08_a_target_that_is_not_known_is_an_error(kept: Kept) -> None:
    """Never a step that passes without effect."""
    program = compiled(f"namespace t {{ {HEAD} {TWO} }}")
    without = replace(program, facets=tuple(f for f in program.facets if f.name != "t.Get"))
    played = Driver(kept.store, without, ANSWERS).play()
    assert played.status is ERROR
    assert played.error["type"] == "UnknownFacet"
    with pytest.raises(UnknownFacet):
        Evaluator(kept.store).start(drive(kept, TWO).hash, "t.Nothing")


def test_09_a_run_is_pinned_to_its_program(kept: Kept) -> None:
    """A new deployment changes nothing for a run that has begun."""
    old = drive(kept, "workflow W() => (o: Long) andThen { a = Get(n = 1) yield W(o = a.r) }")
    run = old.pause().run.id
    new = drive(kept, "workflow W() => (o: Long) andThen { a = Get(n = 1) yield W(o = a.r * 10) }")
    assert new.hash != old.hash
    kept.store.deploy("default", new.hash)
    assert new.finish(run).outputs == {"o": 1}
    assert new.play().outputs == {"o": 10}
    with pytest.raises(UnknownProgram):
        Evaluator(kept.store).start("0" * 64, "t.W")


def test_09_steps_have_the_same_ids_every_time(kept: Kept) -> None:
    """An id is the run and the place: nothing random, so making it twice is the same step."""
    driver = drive(kept, TWO)
    first, second = driver.play(), driver.play()
    assert first.run.id != second.run.id
    assert [*first.steps] == [*second.steps]
    assert all(row.id == step_id(first.run.id, path) for path, row in first.steps.items())


def test_10_results_are_returns_and_defaults_do_not_leak(kept: Kept) -> None:
    """What a handler answers is a return, and what nobody yields is not in a yield."""
    driver = drive(
        kept,
        """facet F(n: Long = 3) => (a: Long, b: Long = 5, cs: [Long]) andThen {
          g = Get(n = $.n)
          yield F(a = g.r)
          yield F(cs = [1])
          yield F(cs = [2])
        }
        workflow W() => (o: Json) andThen { f = F() yield W(o = [f.a, f.b, f.cs]) }""",
    )
    played = driver.play()
    assert played.outputs == {"o": [3, 5, [1, 2]]}
    assert played.steps["0/f/0/yield-0"].returns == {"a": 3}
    got = played.steps["0/f/0/g"]
    assert (got.params, got.returns) == ({"n": 3}, {"r": 3})


def test_11_an_error_in_one_branch_lets_the_other_finish(kept: Kept) -> None:
    """Siblings drain, nothing runs on garbage, and then the run fails."""
    driver = drive(
        kept,
        """workflow W() => (o: Long) andThen {
          a = Get(n = 1)
          needs = Other(n = a.r)
          free = Other(n = 2)
          more = Other(n = free.r + 1)
          yield W(o = needs.r)
        }""",
        Get=failing(),
    )
    played = driver.play()
    assert played.status is ERROR
    assert [params for _, params in played.asked] == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_12_a_run_has_ended_exactly_when_nothing_of_it_runs(kept: Kept) -> None:
    """The end of a run is written with the end of its last step."""
    driver = drive(kept, TWO)
    run = driver.pause().run.id
    first, second = driver.claim()
    driver.answer(first)
    driver.advance()
    found = kept.store.get_run(run)
    assert found is not None
    assert found.state == RunState.RUNNING
    driver.answer(second)
    driver.advance()
    found = kept.store.get_run(run)
    flow = kept.store.kernel.get_task(TaskId(run))
    assert found is not None
    assert flow is not None
    assert (found.state, flow.result) == (RunState.COMPLETED, {"o": 3})
    assert all(task.outcome is not None for task in driver.tasks(run))


def test_13_a_step_is_read_in_its_own_body(kept: Kept) -> None:
    """Its result is there before it is complete."""
    driver = drive(
        kept,
        """workflow W() => (o: Long) andThen {
          a = Get(n = 4) andThen { b = Get(n = a.r + a.n) yield Get(r = b.r) }
          yield W(o = a.r)
        }""",
    )
    assert driver.play().outputs == {"o": 8}


def _impossible() -> ir.Program:
    """A program that no checker would pass: two steps that need each other."""
    program = compiled(
        f"namespace t {{ {HEAD} workflow W() => (o: Long) andThen"
        " { first = Get(n = 1) a = Keep(n = 1) b = Keep(n = a.n) yield W(o = b.n) } }"
    )
    (workflow,) = [facet for facet in program.facets if facet.name == "t.W"]
    (clause,) = workflow.clauses
    assert isinstance(clause.body, ir.Block)
    statements = tuple(
        replace(each, needs=("t.W/0/b", "t.W/0/first"))
        if isinstance(each, ir.Step) and each.name == "a"
        else each
        for each in clause.body.statements
    )
    broken = replace(workflow, clauses=(replace(clause, body=ir.Block(statements)),))
    facets = tuple(broken if facet is workflow else facet for facet in program.facets)
    return replace(program, facets=facets)


def test_14_a_run_that_cannot_go_on_says_what_it_waits_for(kept: Kept) -> None:
    """A deadlock is an error with names in it, never a silent stall."""
    played = Driver(kept.store, _impossible(), ANSWERS).play()
    assert played.status is ERROR
    assert played.error["type"] == "Deadlock"
    assert "`0/a` waits for t.W/0/b" in str(played.error["message"])
    assert "`0/b` waits for t.W/0/a" in str(played.error["message"])


def test_14_a_deadlock_is_named_at_the_first_look_too(kept: Kept) -> None:
    """Even when no row of the run has been written yet."""
    program = _impossible()
    (workflow,) = [facet for facet in program.facets if facet.name == "t.W"]
    (clause,) = workflow.clauses
    assert isinstance(clause.body, ir.Block)
    block = ir.Block(
        tuple(
            replace(each, needs=("t.W/0/b",))
            if isinstance(each, ir.Step) and each.name == "a"
            else each
            for each in clause.body.statements
            if not (isinstance(each, ir.Step) and each.name == "first")
        )
    )
    broken = replace(workflow, clauses=(replace(clause, body=block),))
    facets = tuple(broken if facet is workflow else facet for facet in program.facets)
    played = Driver(kept.store, replace(program, facets=facets)).play()
    assert played.error["type"] == "Deadlock"
    assert "`0/a` waits for t.W/0/b" in str(played.error["message"])


def test_14_a_foreach_over_an_answer_has_all_its_iterations(kept: Kept) -> None:
    """Never none because the list was looked up in the wrong place."""
    driver = drive(
        kept,
        """event facet All() => (xs: [Long])
        workflow W() => (ys: [Long]) andThen { a = All() } andThen foreach x in a.xs {
          k = Keep(n = $.x)
          yield W(ys = [k.n])
        }""",
        All=lambda params: {"xs": [4, 5, 6]},
    )
    assert driver.play().outputs == {"ys": [4, 5, 6]}


def test_15_an_answer_from_outside_goes_through_the_machine(kept: Kept) -> None:
    """`continue_step` and `fail_step` answer calls; containers and strangers have none."""
    driver = drive(kept, TWO)
    run = driver.pause().run.id
    operator = Evaluator(kept.store)
    operator.continue_step(step_id(run, "0/a"), {"r": 5})
    for path in (ROOT, "0", "0/nobody"):
        with pytest.raises(UnknownStep):
            operator.continue_step(step_id(run, path), {"r": 5})
    operator.fail_step(step_id(run, "0/b"), "no", "Refused")
    driver.advance()
    played = driver.played(run)
    assert played.steps["0/a"].returns == {"r": 5}
    assert played.error == {"type": "Refused", "message": "no", "step": "0/b"}


# E7 and the queue


WIDE = "workflow W() => (o: Long) andThen {{ {steps} join = Get(n = {sum}) yield W(o = join.r) }}"


def test_e7_a_join_of_fifty_is_made_once(kept: Kept) -> None:
    """However many workers finish its needs, and in whatever order."""
    text = WIDE.format(
        steps=" ".join(f"s{n} = Get(n = {n})" for n in range(50)),
        sum=" + ".join(f"s{n}.r" for n in range(50)),
    )
    driver = Driver(
        kept.store, f"namespace t {{ {HEAD} {text} }}", ANSWERS, order="chance", workers=5
    )
    played = driver.play()
    assert played.outputs == {"o": sum(range(50))}
    steps = Counter(str(given(task)["step"]) for task in played.tasks)
    assert len(steps) == 51
    assert set(steps.values()) == {1}


def test_e7_a_second_answer_to_a_step_is_a_no_op(kept: Kept) -> None:
    """The first answer wins, also when the second comes late or from elsewhere."""
    driver = drive(kept, TWO)
    run = driver.pause().run.id
    (slow, other) = driver.claim()
    operator = Evaluator(kept.store)
    for result in ({"r": 5}, {"r": 6}):
        operator.continue_step(step_id(run, "0/a"), result)
    driver.advance()
    operator.continue_step(step_id(run, "0/a"), {"r": 7})
    with pytest.raises(Fenced):
        driver.answer(slow)
    driver.answer(other)
    assert driver.finish(run).outputs == {"o": 7}
    operator.continue_step(step_id(run, "0/a"), {"r": 8})
    assert not driver.advance()
    assert driver.played(run).outputs == {"o": 7}


def test_16_a_worker_gets_only_what_it_asks_for(kept: Kept) -> None:
    """By name and by list, on the real store."""
    driver = drive(
        kept,
        """event facet Far(n: Long) => (r: Long) with Queue(name = "far")
        workflow W() => (o: Long) andThen {
          a = Get(n = 1) b = Other(n = 2) c = Far(n = 3)
          yield W(o = a.r + b.r + c.r)
        }""",
    )
    driver.pause()
    kernel, worker = kept.store.kernel, driver.workers[0]
    assert kernel.claim(ClaimRequest(worker, ("t.Nothing",), n=9)) == []
    names = [claim.task.name for claim in kernel.claim(ClaimRequest(worker, ("Other",), n=9))]
    assert names == ["t.Other"]
    assert kernel.claim(ClaimRequest(worker, ("t.Far",), n=9)) == []
    far = kernel.claim(ClaimRequest(worker, ("t.Far",), ("far",), n=9))
    assert [claim.task.name for claim in far] == ["t.Far"]


def test_21_there_is_no_endless_cycle_of_failures(kept: Kept) -> None:
    """Without `Retry` a failure is final; with it there are as many attempts as it says."""
    attempts = 0

    def answer(params: dict[str, Json]) -> dict[str, Json]:
        nonlocal attempts
        attempts += 1
        raise Failure("Boom", "always")

    driver = drive(
        kept,
        """event facet Twice() => (r: Long) with Retry(max_attempts = 2, delay = 1s)
        workflow W() => (o: Long) andThen { a = Twice() yield W(o = a.r) }""",
        Twice=answer,
    )
    run = driver.pause().run.id
    for _ in range(5):
        driver.answer_all()
        driver.advance()
        kept.advance(timedelta(minutes=1))
    assert driver.played(run).status is ERROR
    assert attempts == 2


def test_22_a_run_whose_first_worker_died_is_started_by_another(kept: Kept) -> None:
    """The first advance is claimed like any other; making the run twice is making it once."""
    driver = drive(kept, TWO)
    evaluator = Evaluator(kept.store)
    run = evaluator.start(driver.hash, "t.W", key="order-1")
    assert evaluator.start(driver.hash, "t.W", key="order-1") == run
    driver.claim_flow(driver.worker(lease=timedelta(seconds=1)))
    kept.advance(timedelta(seconds=5))
    kept.store.kernel.sweep()
    assert driver.finish(run).outputs == {"o": 3}
    assert len(kept.store.find_runs()) == 1


def test_27_of_two_writers_of_one_run_the_second_is_refused(kept: Kept) -> None:
    """Both evaluate the same claim; one commit counts, and its repetition changes nothing."""
    driver = drive(kept, TWO)
    run = driver.start()
    claim = driver.claim_flow()
    one, other = Evaluator(kept.store), Evaluator(kept.store)
    turn, copy = one.evaluate(claim), other.evaluate(claim)
    one.commit(turn)
    before = driver.played(run)
    other.commit(copy)
    assert driver.played(run).steps == before.steps
    assert len(driver.tasks(run)) == 2
    assert driver.finish(run).outputs == {"o": 3}


def test_30_a_run_that_is_stopped_goes_no_further(kept: Kept) -> None:
    """Cancelling is a state that the commit looks at, not a wish."""
    driver = drive(kept, TWO)
    run = driver.pause().run.id
    (first, _) = driver.claim()
    driver.answer(first)
    claim = driver.claim_flow()
    kept.store.kernel.stop(TaskId(run))
    driver.evaluate(Evaluator(kept.store), claim)
    flow = kept.store.kernel.get_task(TaskId(run))
    assert flow is not None
    assert flow.outcome is not None
    assert flow.outcome.value == "canceled"
    assert not driver.advance()


def test_a_broken_row_is_a_deadlock_too(kept: Kept) -> None:
    """A run whose rows say that it waits, and for which nothing is outstanding."""
    driver = drive(kept, TWO)
    run = begin(kept, program=driver.hash, workflow="t.W")
    root = step(run, ROOT, object_type="Workflow", statement_id="t.W", facet_name="t.W")
    root.state, root.frame = "state.statement.blocks.Continue", {"left": 1, "open": 0}
    block = step(run, "0", object_type="AndThen", statement_id="t.W/0")
    block.state, block.frame = (
        "state.block.execution.Continue",
        {"left": 1, "waits": {"yield-0": 2}},
    )
    save(kept, root, block)
    # its flow task is claimed for the first time, so the evaluator is told that rows exist
    claim = kept.store.kernel.take(driver.workers[0], TaskId(run))
    assert claim is not None
    claim = replace(claim, task=replace(claim.task, committed_fence=claim.fence))
    turn = Evaluator(kept.store).evaluate(claim)
    assert turn.end is not None
    state, _, error = turn.end
    assert error is not None
    assert (state, error["type"]) == (RunState.FAILED, "Deadlock")
    assert "`0/yield-0` waits for t.W/0/a, t.W/0/b" in str(error["message"])
