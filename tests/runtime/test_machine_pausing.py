"""Paused runs: nothing starts, and no answer is lost."""

from __future__ import annotations

import pytest

from afl.runtime.evaluator import Evaluator
from afl.runtime.step import ROOT, WorkflowId, step_id
from tests.runtime.conformance.driver import COMPLETED, ERROR, PAUSED, Answer, Driver, failing
from tests.runtime.kept import Kept

TEXT = """namespace t {
  event facet Get(n: Long) => (r: Long)
  workflow Inner(n: Long) => (o: Long) andThen { g = Get(n = $.n) yield Inner(o = g.r) }
  workflow W() => (o: Long) andThen {
    a = Get(n = 1)
    b = Get(n = a.r + 1)
    c = Get(n = 10)
    d = Inner(n = 100)
    yield W(o = b.r + c.r + d.o)
  }
}"""
ANSWERS: dict[str, Answer] = {"Get": lambda params: {"r": params["n"]}}


def drive(kept: Kept, evaluators: int = 2, **answers: Answer) -> Driver:
    return Driver(kept.store, TEXT, {**ANSWERS, **answers}, evaluators=evaluators)


def resume(kept: Kept, run: WorkflowId) -> None:
    """What an operator does: takes the pause back, then ends it."""
    assert kept.store.set_pause(run, False)
    root = kept.store.get_step(step_id(run, ROOT))
    if root is not None:
        Evaluator(kept.store).end_pause(run, root)


@pytest.mark.parametrize("evaluators", [0, 1, 2])
def test_nothing_starts_while_a_run_is_paused(kept: Kept, evaluators: int) -> None:
    driver = drive(kept, evaluators)
    run = driver.pause().run.id
    before = driver.played(run)
    kept.store.set_pause(run, True)
    driver.answer_all()
    driver.advance()
    paused = driver.played(run)
    assert paused.status is PAUSED
    assert paused.steps.keys() == before.steps.keys()
    assert driver.claim() == []
    assert not driver.advance()
    resume(kept, run)
    done = driver.finish(run)
    assert (done.status, done.outputs) == (COMPLETED, {"o": 112})
    assert {done.steps[ROOT].frame.get(name) for name in ("inbox", "paused", "more")} == {None}
    assert done.steps[ROOT].frame["open"] == 0


def test_a_run_that_is_paused_before_it_starts(kept: Kept) -> None:
    driver = drive(kept)
    run = driver.start()
    kept.store.set_pause(run, True)
    driver.advance()
    assert [*driver.played(run).steps] == [""]
    assert driver.claim() == []
    resume(kept, run)
    assert driver.finish(run).outputs == {"o": 112}


def test_a_failure_that_comes_during_a_pause_is_kept(kept: Kept) -> None:
    driver = drive(kept, Get=failing())
    run = driver.pause().run.id
    kept.store.set_pause(run, True)
    driver.answer_all()
    driver.advance()
    assert driver.played(run).status is PAUSED
    resume(kept, run)
    played = driver.finish(run)
    assert (played.status, played.error["step"]) == (ERROR, "0/a")


def test_a_run_can_be_paused_again_and_again(kept: Kept) -> None:
    driver = drive(kept)
    run = driver.pause().run.id
    for claim in driver.claim():
        kept.store.set_pause(run, True)
        driver.answer(claim)
        driver.advance()
        resume(kept, run)
        driver.advance()
    assert driver.finish(run).outputs == {"o": 112}


def test_a_pause_that_follows_at_once_on_the_end_of_another(kept: Kept) -> None:
    driver = drive(kept)
    run = driver.pause().run.id
    first, *others = driver.claim()
    kept.store.set_pause(run, True)
    driver.answer(first)
    driver.advance()
    # nobody looks between the end of the one pause and the begin of the next
    resume(kept, run)
    kept.store.set_pause(run, True)
    assert driver.advance()
    assert not driver.advance()
    assert driver.played(run).status is PAUSED
    # the end of the second pause is an event of its own: nothing else has to happen
    resume(kept, run)
    assert driver.advance()
    assert driver.played(run).states["0/b"] == "EventTransmit"
    for claim in others:
        driver.answer(claim)
    assert driver.finish(run).outputs == {"o": 112}


def test_a_resume_of_a_run_that_never_noticed_its_pause(kept: Kept) -> None:
    driver = drive(kept)
    run = driver.pause().run.id
    kept.store.set_pause(run, True)
    resume(kept, run)
    assert driver.finish(run).outputs == {"o": 112}
