"""Order, clauses, foreach and when: what starts when, and how often."""

from __future__ import annotations

from itertools import pairwise

import pytest

from afl.kernel.model import Json
from tests.runtime.conformance.driver import (
    COMPLETED,
    ERROR,
    ORDERS,
    PAUSED,
    Answer,
    Driver,
    Order,
    given,
)
from tests.runtime.kept import Kept

HEAD = """
  event facet Get(n: Long) => (r: Long)
  event facet Find(n: Long) => (r: Long?)
  event facet List(n: Long) => (xs: [Long])
  facet Keep(n: Long)
"""


def _numbers(params: dict[str, Json]) -> dict[str, Json]:
    assert isinstance(params["n"], int)
    return {"xs": list(range(params["n"]))}


ANSWERS: dict[str, Answer] = {
    "Get": lambda params: {"r": params["n"]},
    "Find": lambda params: {"r": params["n"] if params["n"] else None},
    "List": _numbers,
}


def drive(kept: Kept, body: str, order: Order = "made", seed: int = 0, workers: int = 1) -> Driver:
    text = f"namespace t {{ {HEAD} {body} }}"
    return Driver(kept.store, text, ANSWERS, order=order, seed=seed, workers=workers)


# Order


@pytest.mark.parametrize("order", ORDERS)
def test_the_order_in_which_statements_are_written_means_nothing(kept: Kept, order: Order) -> None:
    played = drive(
        kept,
        """workflow W() => (o: Long) andThen {
          yield W(o = c.r)
          c = Get(n = a.r + b.r)
          a = Get(n = 1)
          b = Get(n = 2)
        }""",
        order,
    ).play()
    assert played.outputs == {"o": 3}


def test_after_makes_a_step_wait(kept: Kept) -> None:
    driver = drive(
        kept,
        """workflow W() => (o: Long) andThen {
          a = Get(n = 1)
          b = Get(n = 2) after a
          c = Get(n = 3) after a, b
          yield W(o = c.r)
        }""",
    )
    run = driver.pause().run.id
    for number in (1, 2, 3):
        (claim,) = driver.claim()
        assert given(claim.task)["params"] == {"n": number}
        driver.answer(claim)
        driver.advance()
    assert driver.played(run).outputs == {"o": 3}


# Blocks that read each other


NESTED = """workflow W(xs: [Long]) => (o: Long, ys: [Long]) andThen {
  outer = Keep(n = 1) andThen {
    inner = Keep(n = 2) andThen {
      deep = Get(n = late.r + later.r)
      yield W(o = deep.r)
    }
  }
  late = Get(n = 10)
  later = Get(n = late.r + 1)
} andThen foreach x in $.xs {
  own = Get(n = $.x)
  read = Get(n = own.r + later.r)
  kept = Keep(n = read.r) andThen { last = Get(n = own.r + late.r) yield W(ys = [last.r]) }
}"""


@pytest.mark.parametrize("order", ORDERS)
def test_a_block_waits_for_steps_outside_of_it(kept: Kept, order: Order) -> None:
    played = drive(kept, NESTED, order).play(xs=[1, 2, 3])
    assert played.outputs == {"o": 21, "ys": [11, 12, 13]}
    assert played.steps["0/outer/0/inner/0/deep"].params == {"n": 21}
    assert [played.steps[f"1/{n}/read"].params["n"] for n in range(3)] == [12, 13, 14]


def test_a_block_waits_for_steps_outside_of_it_whoever_answers(kept: Kept) -> None:
    for seed in range(5):
        played = drive(kept, NESTED, "chance", seed, workers=3).play(xs=[1, 2, 3])
        assert played.outputs == {"o": 21, "ys": [11, 12, 13]}


@pytest.mark.parametrize("order", ORDERS)
def test_a_clause_reads_the_steps_of_earlier_ones_and_hides_their_names(
    kept: Kept, order: Order
) -> None:
    played = drive(
        kept,
        """workflow W() => (xs: [Long]) andThen {
          a = Get(n = 1)
          b = Get(n = 2)
          yield W(xs = [a.r])
        } andThen {
          a = Get(n = b.r * 10)
          c = Get(n = a.r + b.r)
          yield W(xs = [a.r, c.r])
        } andThen {
          yield W(xs = [a.r + c.r])
        } andThen foreach x in [a.r, c.r] { yield W(xs = [$.x]) }
        andThen when { case a.r > 10 => { yield W(xs = [99]) } case _ => {} }""",
        order,
    ).play()
    # the last two clauses read the nearest `a` before them: that of the second clause
    assert played.outputs == {"xs": [1, 20, 22, 42, 20, 22, 99]}


def test_lists_of_two_clauses_are_joined_as_they_are_written(kept: Kept) -> None:
    # E17
    played = drive(
        kept,
        "workflow W() => (xs: [Long]) andThen { a = Get(n = 1) yield W(xs = [a.r]) }"
        " andThen { yield W(xs = [2]) }",
    ).play()
    assert played.outputs == {"xs": [1, 2]}


def test_chains_and_sums_of_records(kept: Kept) -> None:
    # E18
    played = drive(
        kept,
        """facet Inc(n: Long) => (m: Long) andThen { yield Inc(m = $.n + 1) }
        workflow W() => (one: Long, two: Long, three: [Long]) andThen {
          a = Inc(n = 1) b = Inc(n = a.m) c = Inc(n = b.m)
          yield W(one = c.m)
        } andThen {
          a = Keep(n = 2) b = Keep(n = 11) c = Keep(n = a.n + b.n)
          yield W(two = c.n, three = [c.n])
        } andThen { a = Keep(n = 13) yield W(three = [a.n]) }
        andThen { a = Keep(n = 13) yield W(three = [a.n]) }""",
    ).play()
    assert played.outputs == {"one": 4, "two": 13, "three": [13, 13, 13]}


# foreach


def test_a_limit_bounds_how_many_are_under_way(kept: Kept) -> None:
    driver = drive(
        kept,
        """workflow W(most: Int) => (ys: [Long]) andThen foreach x in [5, 4, 3, 2, 1, 0, 7]
          limit $.most {
          a = Get(n = $.x)
          b = Get(n = a.r)
          yield W(ys = [b.r])
        }""",
        "reverse",
    )
    run = driver.start(most=3)
    most = 0
    while driver.step():
        open_ = [
            path for path in driver.played(run).paths("block.execution.Continue") if "/" in path
        ]
        most = max(most, len(open_))
    played = driver.played(run)
    assert played.outputs == {"ys": [5, 4, 3, 2, 1, 0, 7]}
    assert most == 3


def test_a_limit_below_one_is_an_error(kept: Kept) -> None:
    played = drive(
        kept,
        "workflow W(most: Int) => (ys: [Long]) andThen foreach x in [1] limit $.most"
        " { yield W(ys = [$.x]) }",
    ).play(most=0)
    assert "limit" in str(played.error["message"])


@pytest.mark.parametrize("order", ORDERS)
def test_a_foreach_over_an_answer_and_a_foreach_inside(kept: Kept, order: Order) -> None:
    played = drive(
        kept,
        """workflow W() => (ys: [[Long]], zs: [Long]) andThen {
          listed = List(n = 3)
        } andThen foreach x in listed.xs limit 2 {
          inner = List(n = $.x) andThen foreach y in inner.xs {
            got = Get(n = $.x * 10 + $.y)
            yield W(zs = [got.r])
          }
          yield W(ys = [inner.xs])
        }""",
        order,
    ).play()
    assert played.outputs == {"ys": [[], [0], [0, 1]], "zs": [10, 20, 21]}


@pytest.mark.parametrize("order", ORDERS)
def test_a_foreach_that_chooses(kept: Kept, order: Order) -> None:
    played = drive(
        kept,
        """workflow W() => (ys: [Long]) andThen {
          bound = Get(n = 2)
        } andThen foreach x in [1, 2, 3] {
          item = Keep(n = $.x) andThen when {
            case item.n < bound.r => { a = Get(n = $.x) yield W(ys = [a.r]) }
            case item.n == bound.r => {}
            case _ => { a = Get(n = $.x * 100) yield W(ys = [a.r, $.x]) }
          }
        }""",
        order,
    ).play()
    assert played.outputs == {"ys": [1, 300, 3]}


def test_a_foreach_over_something_else_than_a_list_is_an_error(kept: Kept) -> None:
    played = drive(
        kept,
        "workflow W(j: Json) => (ys: [Long]) andThen foreach x in $.j { yield W(ys = [1]) }",
    ).play(j={"a": 1})
    assert played.status is ERROR
    assert played.error["type"] == "EvaluationError"


def test_a_large_foreach_is_committed_in_parts(kept: Kept) -> None:
    driver = drive(
        kept,
        "workflow W(xs: [Long]) => (n: [Long]) andThen foreach x in $.xs { k = Keep(n = $.x)"
        " yield W(n = [k.n]) }",
    )
    run = driver.start(xs=list(range(2500)))
    turns = driver.evaluate(driver.evaluator, driver.claim_flow())
    assert driver.played(run).outputs == {"n": list(range(2500))}
    sizes = [len(turn.changes.created_steps) for turn in turns]
    assert sum(sizes) == 2 + 2500 * 3
    assert len(sizes) > 1


# when


@pytest.mark.parametrize(("number", "text"), [(5, "got 5"), (0, "nothing"), (7, "seven")])
def test_a_test_for_null_makes_a_value_usable(kept: Kept, number: int, text: str) -> None:
    played = drive(
        kept,
        """workflow W(n: Long) => (o: String) andThen { found = Find(n = $.n) } andThen when {
          case found.r != null && found.r == 7 => { yield W(o = "seven") }
          case found.r == null => { yield W(o = "nothing") }
          case _ => { got = Get(n = found.r) yield W(o = "got " ++ got.r) }
        }""",
    ).play(n=number)
    assert played.outputs == {"o": text}


def test_a_when_waits_for_all_that_its_conditions_read(kept: Kept) -> None:
    driver = drive(
        kept,
        """workflow W() => (o: Long) andThen { a = Get(n = 1) b = Get(n = 2) } andThen when {
          case a.r == 1 => { yield W(o = 1) }
          case b.r == 2 => { yield W(o = 2) }
          case _ => { yield W(o = 3) }
        }""",
    )
    run = driver.pause().run.id
    first, second = driver.claim()
    driver.answer(first)
    driver.advance()
    assert driver.played(run).states["1"] == "block.execution.Begin"
    assert driver.played(run).status is PAUSED
    driver.answer(second)
    driver.advance()
    played = driver.played(run)
    assert (played.status, played.outputs) == (COMPLETED, {"o": 1})


def test_no_case_but_the_first_true_one_is_looked_at(kept: Kept) -> None:
    played = drive(
        kept,
        """workflow W(j: Json) => (o: Long) andThen when {
          case $.j.n == 1 => { yield W(o = 1) }
          case $.j.missing.deep => { yield W(o = 2) }
          case _ => { yield W(o = 3) }
        }""",
    ).play(j={"n": 1})
    assert played.outputs == {"o": 1}


# Recursion


def test_a_facet_that_calls_itself(kept: Kept) -> None:
    played = drive(
        kept,
        """facet Tree(n: Long) => (sizes: [Long]) andThen {
          listed = List(n = $.n)
          yield Tree(sizes = [$.n])
        } andThen foreach child in listed.xs {
          inner = Tree(n = $.child)
          yield Tree(sizes = inner.sizes)
        }
        workflow W() => (sizes: [Long]) andThen { t = Tree(n = 3) yield W(sizes = t.sizes) }""",
        "reverse",
    ).play()
    assert played.outputs == {"sizes": [3, 0, 1, 0, 2, 0, 1, 0]}


def test_a_facet_that_counts_down(kept: Kept) -> None:
    played = drive(
        kept,
        """facet Down(n: Long) => (xs: [Long]) andThen { yield Down(xs = [$.n]) } andThen when {
          case $.n > 0 => { next = Down(n = $.n - 1) yield Down(xs = next.xs) }
          case _ => {}
        }
        workflow W() => (xs: [Long]) andThen { d = Down(n = 40) yield W(xs = d.xs) }""",
    ).play()
    xs = played.outputs["xs"]
    assert isinstance(xs, list)
    assert (len(xs), all(a == b + 1 for a, b in pairwise(xs))) == (41, True)  # type: ignore[operator]
