"""Policies as they reach the kernel's tasks, and work that need not be done again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from afl.kernel.model import MAX_CRASHES, NO_RETRY, Json, Retry, State, Task
from afl.runtime.calls import NO_TIMEOUT
from afl.runtime.entities import Fork
from tests.runtime.conformance.driver import (
    COMPLETED,
    ERROR,
    PAUSED,
    Answer,
    Driver,
    Failure,
    Played,
    failing,
    given,
)
from tests.runtime.kept import Kept

SECOND = timedelta(seconds=1)
ANSWERS: dict[str, Answer] = {
    "Do": lambda params: {"r": params["n"]},
    "Pure": lambda params: {"r": params["n"]},
}


def drive(
    kept: Kept, body: str, lists: tuple[str, ...] = ("default",), **answers: Answer
) -> Driver:
    text = f"namespace t {{ {body} }}"
    return Driver(kept.store, text, {**ANSWERS, **answers}, lists=lists)


def task_of(kept: Kept, facet: str, call: str = "") -> Task:
    """The task of a step that calls a facet with these policies."""
    driver = drive(
        kept,
        f"""event facet Do(n: Long) => (r: Long) {facet}
        workflow W() => (o: Long) andThen {{ a = Do(n = 4) {call} yield W(o = a.r) }}""",
    )
    (task,) = driver.pause().tasks
    return task


def test_a_task_without_policies(kept: Kept) -> None:
    task = task_of(kept, "")
    assert (task.kind, task.list, task.priority, task.lane) == ("event", "default", 0, None)
    assert (task.retry, task.max_crashes) == (NO_RETRY, MAX_CRASHES)
    # it may take as long as its caller's longest wait
    assert (task.deadline is None) or task.deadline - task.created_at >= NO_TIMEOUT - SECOND
    assert given(task).keys() == {"facet", "params", "run", "step", "program"}


def test_queue_and_priority(kept: Kept) -> None:
    task = task_of(kept, 'with Queue(name = "gpu") with Priority(level = 7)')
    assert (task.list, task.priority) == ("gpu", 7)
    task = task_of(kept, 'with Queue(name = "gpu")', 'with Queue(name = "cpu")')
    assert task.list == "cpu"


def test_retry(kept: Kept) -> None:
    task = task_of(
        kept,
        "with Retry(max_attempts = 4, delay = 2s, backoff = 3.0, max_delay = 10s, jitter = false,"
        ' on = ["Busy"])',
    )
    assert task.retry == Retry(3, 2 * SECOND, 3.0, 10 * SECOND, jitter=False)
    assert given(task)["retry_on"] == ["Busy"]
    assert task_of(kept, "with Retry()").retry == Retry(2)


def test_the_timeout_of_an_attempt_and_of_all_of_them(kept: Kept) -> None:
    task = task_of(kept, "with Timeout(minutes = 1, seconds = 5)")
    assert given(task)["attempt_timeout_ms"] == 65_000
    assert task.deadline is not None
    # beyond its one attempt there is slack, so that the attempt ends by its own time
    assert task.deadline - task.created_at == (65 + 5 + 6.5) * SECOND
    task = task_of(
        kept, "with Timeout(seconds = 10) with Retry(max_attempts = 3, delay = 2s, backoff = 2.0)"
    )
    assert task.deadline is not None
    # three attempts, and waits of two and four seconds between them, and slack
    assert task.deadline - task.created_at == (36 + 5 + 3.6) * SECOND


def test_concurrency_is_lanes(kept: Kept) -> None:
    driver = drive(
        kept,
        """event facet Do(n: Long) => (r: Long) with Concurrency(max = 2, key = "k" ++ $.n)
        workflow W() => (rs: [Long]) andThen foreach x in [1, 1, 1, 1, 1, 1, 2] {
          a = Do(n = $.x)
          yield W(rs = [a.r])
        }""",
    )
    played = driver.pause()
    lanes = {task.lane for task in played.tasks}
    assert {str(lane).rpartition(":")[0] for lane in lanes} == {"t.Do:k1", "t.Do:k2"}
    assert {str(lane).rpartition(":")[2] for lane in lanes} <= {"0", "1"}
    ready = [task for task in played.tasks if task.state is State.READY]
    assert len(ready) == len(lanes)
    assert driver.finish(played.run.id).outputs == {"rs": [1, 1, 1, 1, 1, 1, 2]}


def test_effects(kept: Kept) -> None:
    assert "effect" not in given(task_of(kept, "with Effect(kind = keyed)"))
    task = task_of(kept, "with Effect(kind = irreversible)")
    assert (given(task)["effect"], task.max_crashes) == ("irreversible", 0)
    task = task_of(kept, "with Effect(kind = idempotent)")
    assert (given(task)["effect"], task.max_crashes) == ("idempotent", MAX_CRASHES)


def test_who_serves(kept: Kept) -> None:
    human = task_of(kept, 'with Human(group = "editors", deadline = 2d)')
    assert (human.kind, given(human)["group"]) == ("human", "editors")
    assert human.deadline is not None
    assert human.deadline - human.created_at == timedelta(days=2)
    assert task_of(kept, 'prompt { template "{n}" }').kind == "turn"
    script = task_of(kept, 'script { result["r"] = 1 }')
    assert (script.kind, script.name) == ("script", "afl:script")
    assert 'result["r"] = 1' in str(given(script)["script"])


def test_a_workflow_as_a_step_has_its_policies_on_its_flow_task(kept: Kept) -> None:
    driver = drive(
        kept,
        """event facet Do(n: Long) => (r: Long)
        workflow Inner() => (o: Long) with Queue(name = "slow") with Priority(level = 3)
          with Timeout(hours = 1)
        andThen { a = Do(n = 1) yield Inner(o = a.r) }
        workflow W() => (o: Long) andThen { a = Inner() yield W(o = a.o) }""",
        lists=("default", "slow"),
    )
    played = driver.pause()
    (child,) = kept.store.find_runs(parent=played.run.id)
    task = kept.store.kernel.get_task(child.id)  # type: ignore[arg-type]
    assert task is not None
    assert (task.list, task.priority) == ("slow", 3)
    assert task.deadline is not None
    assert task.deadline - task.created_at == timedelta(hours=1)
    # what it asks for is as urgent as itself
    assert [each.priority for each in played.tasks] == [3]
    assert driver.finish(played.run.id).outputs == {"o": 1}


# What time does


def test_a_failure_is_retried_before_it_is_one(kept: Kept) -> None:
    attempts: list[int] = []

    def answer(params: dict[str, Json]) -> dict[str, Json]:
        attempts.append(1)
        if len(attempts) < 3:
            raise Failure("Busy", "not now")
        return {"r": 9}

    driver = drive(
        kept,
        """event facet Do(n: Long) => (r: Long) with Retry(max_attempts = 3, delay = 1s)
        workflow W() => (o: Long) andThen { a = Do(n = 1) yield W(o = a.r) }""",
        Do=answer,
    )
    run = driver.pause().run.id
    for expected in (PAUSED, PAUSED, COMPLETED):
        driver.answer_all()
        driver.advance()
        assert driver.played(run).status is expected
        kept.advance(10 * SECOND)
    assert driver.played(run).outputs == {"o": 9}


@pytest.mark.parametrize("caught", [False, True])
def test_work_that_takes_too_long_fails_with_a_timeout(kept: Kept, caught: bool) -> None:
    catch = "catch { yield Do(r = 0) yield W(type = error.type) }" if caught else ""
    driver = drive(
        kept,
        f"""event facet Do(n: Long) => (r: Long) with Timeout(seconds = 5)
        workflow W() => (o: Long, type: String?) andThen {{
          a = Do(n = 1) {catch}
          yield W(o = a.r)
        }}""",
    )
    run = driver.pause().run.id
    (late,) = driver.claim()
    kept.advance(11 * SECOND)
    kept.store.kernel.sweep()
    driver.advance()
    played = driver.played(run)
    if caught:
        assert played.outputs == {"o": 0, "type": "Timeout"}
    else:
        assert (played.status, played.error["type"]) == (ERROR, "Timeout")
    assert kept.store.kernel.get_task(late.task.id).state is State.CLOSED  # type: ignore[union-attr]


def test_a_run_sleeps_without_a_worker(kept: Kept) -> None:
    driver = drive(
        kept,
        """workflow W() => (o: Long) andThen {
          s = afl.time.Sleep(duration = 10s)
          k = K(n = 1) after s
          yield W(o = k.n)
        } facet K(n: Long)""",
    )
    run = driver.pause().run.id
    assert driver.claim() == []
    kept.advance(9 * SECOND)
    kept.store.kernel.sweep()
    assert not driver.advance()
    kept.advance(2 * SECOND)
    kept.store.kernel.sweep()
    driver.advance()
    assert driver.played(run).outputs == {"o": 1}


# Cache


CACHED = """
  event facet Pure(n: Long, trace: String = "") => (r: Long) with Effect(kind = pure)
    with Cache(ttl = 1m, key = "" ++ $.n)
  workflow W(n: Long, trace: String = "") => (o: Long) andThen {
    a = Pure(n = $.n, trace = $.trace) %s
    yield W(o = a.r)
  }"""


def test_a_cached_result_is_not_asked_for_again(kept: Kept) -> None:
    driver = drive(kept, CACHED % "")
    assert len(driver.play(n=1).tasks) == 1
    again = driver.play(n=1, trace="other")
    assert (again.outputs, again.tasks) == ({"o": 1}, [])
    assert again.steps["0/a"].frame["reused"] == "cache"
    assert len(driver.play(n=2).tasks) == 1
    kept.advance(61 * SECOND)
    assert len(driver.play(n=1).tasks) == 1


def test_a_failure_is_not_cached(kept: Kept) -> None:
    assert drive(kept, CACHED % "", Pure=failing()).play(n=1).status is ERROR
    assert len(drive(kept, CACHED % "").play(n=1).tasks) == 1


def test_the_body_of_a_cached_step_runs_each_time(kept: Kept) -> None:
    driver = drive(kept, CACHED % "andThen { yield Pure(r = a.r * 10) }")
    first, second = driver.play(n=1), driver.play(n=1)
    assert (first.outputs, second.outputs) == ({"o": 10}, {"o": 10})
    assert second.tasks == []


@pytest.mark.parametrize("evaluators", [0, 1, 2])
def test_a_run_uses_its_own_cached_results(kept: Kept, evaluators: int) -> None:
    text = """event facet Pure(n: Long) => (r: Long) with Effect(kind = pure) with Cache()
    event facet Do(n: Long) => (r: Long)
    workflow W() => (o: Long) andThen {
      early = Do(n = 1)
      a = Pure(n = 1)
      b = Pure(n = a.r)
      c = Do(n = b.r)
      d = Pure(n = c.r)
      yield W(o = d.r + early.r)
    }"""
    driver = Driver(kept.store, f"namespace t {{ {text} }}", ANSWERS, evaluators=evaluators)
    played = driver.play()
    assert played.outputs == {"o": 2}
    assert [name for name, _ in played.asked] == ["Do", "Pure", "Do"]


# Forks


FORKED = """
  event facet Do(n: Long) => (r: Long)
  workflow Inner(n: Long) => (o: Long) andThen { x = Do(n = $.n) yield Inner(o = x.r) }
  workflow W(n: Long) => (o: Long, t: Long) andThen {
    a = Do(n = $.n)
    b = Do(n = a.r + 1) andThen { yield Do(r = b.r * 10) }
    c = Inner(n = b.r)
    d = Do(n = c.o + 1)
    yield W(o = d.r, t = b.r)
  }"""


def _paths(played: Played) -> list[Json]:
    return [given(task)["step"] for task in played.tasks]


def test_a_fork_takes_over_what_was_done(kept: Kept) -> None:
    driver = drive(kept, FORKED)
    first = driver.play(n=1)
    assert first.outputs == {"o": 21, "t": 20}
    same = driver.fork(Fork(first.run.id), n=1)
    assert (same.outputs, same.tasks) == (first.outputs, [])
    assert same.steps["0/a"].frame["reused"] == first.run.id
    again = driver.fork(Fork(same.run.id), n=1)
    assert (again.outputs, again.tasks) == (first.outputs, [])


def test_a_fork_does_again_what_it_is_told_to(kept: Kept) -> None:
    driver = drive(kept, FORKED)
    first = driver.play(n=1)
    redone = driver.fork(Fork(first.run.id, redo=("0/b",)), n=1)
    assert (redone.outputs, _paths(redone)) == (first.outputs, ["0/b"])
    other = driver.fork(Fork(first.run.id), n=2)
    assert other.outputs == {"o": 31, "t": 30}
    assert len(other.tasks) == 4


def test_a_fork_with_other_arguments(kept: Kept) -> None:
    driver = drive(kept, FORKED)
    first = driver.play(n=1)
    forked = driver.fork(Fork(first.run.id, overrides={"0/d": {"n": 5}}), n=1)
    assert (forked.outputs, _paths(forked)) == ({"o": 5, "t": 20}, ["0/d"])


def test_a_fork_of_a_run_that_failed_does_the_rest(kept: Kept) -> None:
    def answer(params: dict[str, Json]) -> dict[str, Json]:
        if params["n"] == 21:
            raise Failure("Boom", "at the end")
        return {"r": params["n"]}

    driver = drive(kept, FORKED, Do=answer)
    failed = driver.play(n=1)
    assert failed.status is ERROR
    fixed = drive(kept, FORKED).fork(Fork(failed.run.id), n=1)
    assert (fixed.outputs, _paths(fixed)) == ({"o": 21, "t": 20}, ["0/d"])
