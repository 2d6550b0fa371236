"""What a run costs does not depend on its size (lesson 3), and no iteration is without an end."""

from __future__ import annotations

from time import perf_counter

import pytest

from afl.runtime.memory_store import MemoryStore
from afl.runtime.persistence import Loaded, Needed
from afl.runtime.step import WorkflowId
from tests.runtime.conformance.driver import COMPLETED, Answer, Driver

HEAD = """
  event facet Get(n: Long) => (r: Long)
  facet Keep(n: Long)
"""
ANSWERS: dict[str, Answer] = {"Get": lambda params: {"r": params["n"]}}


def test_what_an_answer_costs_does_not_grow_with_the_run() -> None:
    """Counters, not scans: the rows that one answer touches are the same in a run of any size."""

    def touched(size: int) -> int:
        driver = Driver(
            MemoryStore(),
            f"namespace t {{ {HEAD} workflow W(xs: [Long]) => (ys: [Long])"
            " andThen foreach x in $.xs { a = Get(n = $.x) yield W(ys = [a.r]) } }",
            ANSWERS,
            evaluators=0,
        )
        driver.pause(xs=list(range(size)))
        driver.answer(driver.claim(n=1)[0])
        (turn,) = driver.evaluate(driver.evaluator, driver.claim_flow())
        return len(turn.changes.created_steps) + len(turn.changes.updated_steps)

    assert touched(3) == touched(300)


class _CountingStore(MemoryStore):
    """Counts how often it is asked for rows."""

    loads = 0

    def load(self, run: WorkflowId, needed: Needed) -> Loaded:
        self.loads += 1
        return super().load(run, needed)


def test_many_answers_at_once_are_loaded_together() -> None:
    """A process that knows nothing of a run asks for rows by level, not one by one."""

    def loads(size: int) -> int:
        store = _CountingStore()
        text = f"""namespace t {{ {HEAD} workflow W(xs: [Long]) => (ys: [Long]) andThen {{
          z = Get(n = 1)
        }} andThen foreach x in $.xs {{
          a = Get(n = $.x)
          b = Keep(n = 1) andThen {{ c = Keep(n = a.r + z.r) yield W(ys = [c.n]) }}
        }} }}"""
        driver = Driver(store, text, ANSWERS, evaluators=0)
        run = driver.pause(xs=list(range(size))).run.id
        driver.answer_all()
        store.loads = 0
        driver.advance()
        assert driver.played(run).status is COMPLETED
        return store.loads

    assert loads(5) == loads(50) < 10


@pytest.mark.slow
def test_long_chains_cost_the_same_at_every_step() -> None:
    """Two thousand statements, each needing the one before: seconds, not hours."""
    steps = " ".join(f"s{n} = Keep(n = s{n - 1}.n + 1)" for n in range(1, 2000))
    text = f"workflow W() => (o: Long) andThen {{ s0 = Keep(n = 0) {steps} yield W(o = s1999.n) }}"
    driver = Driver(MemoryStore(), f"namespace t {{ {HEAD} {text} }}")
    started = perf_counter()
    assert driver.play().outputs == {"o": 1999}
    assert perf_counter() - started < 60


@pytest.mark.slow
def test_a_foreach_of_five_thousand_costs_the_same_for_every_answer() -> None:
    """The last thousand answers take about as long as the first thousand."""
    driver = Driver(
        MemoryStore(),
        f"namespace t {{ {HEAD} workflow W(xs: [Long]) => (ys: [Long])"
        " andThen foreach x in $.xs { a = Get(n = $.x) yield W(ys = [a.r]) } }",
        ANSWERS,
        evaluators=1,
    )
    run = driver.pause(xs=list(range(5000))).run.id
    times = []
    for _ in range(5):
        started = perf_counter()
        for claim in driver.claim(n=1000):
            driver.answer(claim)
            driver.advance()
        times.append(perf_counter() - started)
    assert driver.played(run).outputs == {"ys": list(range(5000))}
    assert max(times) < 8 * min(times)


def test_a_recursion_without_an_end_is_committed_in_parts() -> None:
    """A run may be endless, an iteration may not: whoever wants to stop the run gets to."""
    driver = Driver(
        MemoryStore(),
        f"""namespace t {{ {HEAD}
        facet Down(n: Long) => (xs: [Long]) andThen when {{
          case $.n > 0 => {{ l = Down(n = $.n - 1) r = Down(n = $.n - 1) yield Down(xs = l.xs) }}
          case _ => {{ yield Down(xs = [1]) }}
        }}
        workflow W() => (xs: [Long]) andThen {{ d = Down(n = 10) yield W(xs = d.xs) }} }}""",
    )
    run = driver.start()
    turns = driver.evaluate(driver.evaluator, driver.claim_flow())
    assert max(len(turn.changes.created_steps) for turn in turns) < 6000
    assert len(turns) > 1
    assert driver.played(run).outputs == {"xs": [1]}
