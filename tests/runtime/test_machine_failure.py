"""What a failure takes with it, and what a catch puts in its place."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from afl.kernel.model import Json
from tests.runtime.conformance.driver import (
    COMPLETED,
    ERROR,
    ORDERS,
    Answer,
    Driver,
    Failure,
    Order,
    Played,
    failing,
)
from tests.runtime.kept import Kept

HEAD = """
  event facet Get(n: Long) => (r: Long, note: String?)
  event facet Bad(n: Long) => (r: Long)
  facet Keep(n: Long)
"""
ANSWERS: dict[str, Answer] = {"Get": lambda params: {"r": params["n"]}, "Bad": failing()}


def play(
    kept: Kept,
    body: str,
    order: Order = "made",
    answers: Mapping[str, Answer] = ANSWERS,
    **inputs: Json,
) -> Played:
    driver = Driver(kept.store, f"namespace t {{ {HEAD} {body} }}", answers, order=order)
    return driver.play(**inputs)


# What is skipped


@pytest.mark.parametrize("order", ORDERS)
def test_a_failure_skips_exactly_what_needs_it(kept: Kept, order: Order) -> None:
    played = play(
        kept,
        """workflow W() => (o: Long) andThen {
          a = Bad(n = 1)
          b = Get(n = a.r)
          c = Get(n = b.r) andThen { d = Get(n = 1) yield Get(r = d.r) }
          free = Get(n = 4)
          next = Get(n = free.r + 1)
          later = Get(n = 9) after b
          sys.log(v = b.r)
          sys.assert(b.r > 1)
          yield W(o = c.r + next.r)
        }""",
        order,
    )
    assert played.status is ERROR
    assert played.paths("complete") == ["0/free", "0/next"]
    skipped = ["0/assert-0", "0/b", "0/c", "0/later", "0/log-0", "0/yield-0"]
    assert played.paths("skipped") == skipped
    assert {played.steps[path].skipped_because for path in skipped} == {"0/a"}
    assert [name for name, _ in played.asked] == ["Bad", "Get", "Get"]


@pytest.mark.parametrize("order", ORDERS)
def test_a_failure_reaches_over_blocks(kept: Kept, order: Order) -> None:
    played = play(
        kept,
        """workflow W(xs: [Long]) => (o: Long?, ys: [Long]) andThen {
          a = Bad(n = 1)
          ok = Get(n = 2)
        } andThen {
          b = Get(n = a.r)
          c = Get(n = ok.r)
          outer = Keep(n = 1) andThen { d = Get(n = a.r) e = Get(n = 3) }
        } andThen foreach x in $.xs {
          y = Get(n = $.x + a.r)
          z = Get(n = $.x)
          yield W(ys = [z.r])
        } andThen foreach x in [a.r] { sys.log(x = $.x) }
        andThen when { case a.r > 1 => { yield W(o = 1) } case _ => {} }""",
        order,
        xs=[7, 8],
    )
    assert played.error == {"type": "Boom", "message": "boom", "step": "0/a"}
    assert played.states == {
        "": "error",
        "0": "error",
        "0/a": "error",
        "0/ok": "complete",
        "1": "skipped",
        "1/b": "skipped",
        "1/c": "complete",
        "1/outer": "skipped",
        "1/outer/0": "skipped",
        "1/outer/0/d": "skipped",
        "1/outer/0/e": "complete",
        "2": "skipped",
        "2/0": "skipped",
        "2/0/y": "skipped",
        "2/0/z": "complete",
        "2/0/yield-0": "complete",
        "2/1": "skipped",
        "2/1/y": "skipped",
        "2/1/z": "complete",
        "2/1/yield-0": "complete",
        "3": "skipped",
        "4": "skipped",
    }


def test_a_schema_that_is_skipped_is_still_one(kept: Kept) -> None:
    played = play(
        kept,
        "schema P { x: Long } workflow W() => (o: Long) andThen"
        " { a = Bad(n = 1) p = P(x = a.r) yield W(o = p.x) }",
    )
    assert played.steps["0/p"].object_type == "SchemaInstantiation"
    assert played.states["0/p"] == "skipped"


@pytest.mark.parametrize("order", ORDERS)
def test_the_failure_that_is_written_first_is_the_error(kept: Kept, order: Order) -> None:
    def answer(params: dict[str, Json]) -> Mapping[str, Json]:
        raise Failure("Boom", f"{params['n']}")

    played = play(
        kept,
        "workflow W() => (o: Long) andThen"
        " { a = Bad(n = 1) b = Bad(n = 2) yield W(o = a.r + b.r) } andThen { c = Bad(n = 3) }",
        order,
        {"Bad": answer},
    )
    assert played.error == {"type": "Boom", "message": "1", "step": "0/a"}


@pytest.mark.parametrize("order", ORDERS)
def test_the_mixin_that_is_written_first_is_the_error(kept: Kept, order: Order) -> None:
    def answer(params: dict[str, Json]) -> Mapping[str, Json]:
        raise Failure("Boom", f"{params['n']}")

    played = play(
        kept,
        "workflow W() => (o: Long) with Bad(n = 1) as one with Bad(n = 2) as two andThen"
        " { yield W(o = $.one.r + $.two.r) }",
        order,
        {"Bad": answer},
    )
    assert played.error == {"type": "Boom", "message": "1", "step": "with/one"}


# What is caught


@pytest.mark.parametrize("order", ORDERS)
def test_a_catch_of_a_step_takes_its_place(kept: Kept, order: Order) -> None:
    played = play(
        kept,
        """workflow W() => (o: Long, note: String?) andThen {
          other = Get(n = 5)
          s = Bad(n = 1) catch {
            again = Get(n = other.r + 1)
            yield Bad(r = again.r)
          }
          t = Bad(n = 2) catch {
            yield Bad(r = 0)
            yield W(note = error.type ++ ": " ++ error.message)
          }
          yield W(o = s.r + t.r)
        }""",
        order,
    )
    assert played.status is COMPLETED
    assert played.outputs == {"o": 6, "note": "Boom: boom"}
    assert played.states["0/s"] == "complete"
    assert played.steps["0/s"].error is None
    assert played.steps["0/s/catch"].params["step"] == "0/s"


def test_returns_that_a_catch_leaves_out_are_null(kept: Kept) -> None:
    played = play(
        kept,
        """event facet Two() => (a: Long, b: Long, c: [Long], d: Long = 4)
        workflow W() => (o: Json) andThen {
          s = Two() catch { yield Two(a = 1) }
          yield W(o = [s.a, s.b, s.c, s.d])
        }""",
        answers={"Two": failing()},
    )
    assert played.outputs == {"o": [1, None, None, 4]}


def test_a_catch_that_chooses(kept: Kept) -> None:
    text = """workflow W() => (o: String?) andThen {
      s = Bad(n = 1) catch when {
        case error.type == "Busy" => { yield W(o = "busy") }
        case error.message contains "disk" => { yield W(o = "disk") }
        case _ => { yield W(o = "other") }
      }
    }"""
    for failure, chosen in (
        (("Busy", ""), "busy"),
        (("Io", "no disk"), "disk"),
        (("Io", ""), "other"),
    ):
        played = play(kept, text, answers={"Bad": failing(*failure)})
        assert played.outputs == {"o": chosen}


@pytest.mark.parametrize("order", ORDERS)
def test_a_catch_of_a_clause_makes_its_yields_void(kept: Kept, order: Order) -> None:
    played = play(
        kept,
        """workflow W() => (o: Long, xs: [Long], note: String?) andThen {
          a = Get(n = 1)
          b = Bad(n = 2)
          skipped = Get(n = b.r)
          yield W(xs = [a.r])
          yield W(o = a.r, note = "guarded")
        } catch {
          c = Get(n = 3)
          yield W(o = c.r, xs = [30])
        } andThen { yield W(xs = [40]) }""",
        order,
    )
    assert played.status is COMPLETED
    assert played.outputs == {"o": 3, "xs": [30, 40], "note": None}
    assert played.states["0"] == "complete"
    assert played.states["0/skipped"] == "skipped"


def test_a_catch_of_a_foreach_guards_all_iterations(kept: Kept) -> None:
    def answer(params: dict[str, Json]) -> Mapping[str, Json]:
        if params["n"] == 2:
            raise Failure("Boom", "two")
        return {"r": params["n"]}

    played = play(
        kept,
        """workflow W() => (xs: [Long]) andThen foreach x in [1, 2, 3] limit 1 {
          a = Bad(n = $.x)
          yield W(xs = [a.r])
        } catch { yield W(xs = [-1]) }""",
        answers={"Bad": answer},
    )
    assert played.outputs == {"xs": [-1]}
    assert len(played.tasks) == 3  # the others run on


def test_a_catch_of_a_step_in_a_foreach_saves_its_iteration(kept: Kept) -> None:
    def answer(params: dict[str, Json]) -> Mapping[str, Json]:
        if params["n"] == 2:
            raise Failure("Boom", "two")
        return {"r": params["n"]}

    played = play(
        kept,
        """workflow W() => (xs: [Long]) andThen foreach x in [1, 2, 3] {
          a = Bad(n = $.x) catch { k = Keep(n = $.x * 100) yield Bad(r = k.n) }
          yield W(xs = [a.r])
        }""",
        answers={"Bad": answer},
    )
    assert played.outputs == {"xs": [1, 200, 3]}


def test_a_catch_of_a_when_and_of_a_script(kept: Kept) -> None:
    played = play(
        kept,
        """workflow W(xs: [Long]) => (a: String, b: Long) andThen when {
          case $.xs[7] > 1 => { yield W(a = "case") }
          case _ => { yield W(a = "default") }
        } catch { yield W(a = error.type) }
        andThen script { result["b"] = 1 / 0 } catch { yield W(b = 7) }""",
        xs=[1],
    )
    assert played.outputs == {"a": "EvaluationError", "b": 7}


@pytest.mark.parametrize("order", ORDERS)
def test_a_catch_of_a_declaration_guards_every_call_of_it(kept: Kept, order: Order) -> None:
    played = play(
        kept,
        """facet F(n: Long) => (o: Long, xs: [Long]) catch {
          k = Get(n = $.n * 10)
          yield F(o = k.r, xs = [])
        } andThen {
          yield F(xs = [1])
        } andThen {
          b = Bad(n = $.n)
          yield F(o = b.r)
        }
        workflow W() => (o: Json) andThen {
          a = F(n = 1)
          b = F(n = 2)
          yield W(o = [a.o, a.xs, b.o])
        }""",
        order,
    )
    assert played.outputs == {"o": [10, [], 20]}
    assert played.states["0/a/facet-catch"] == "complete"


@pytest.mark.parametrize("order", ORDERS)
def test_the_catch_of_a_step_comes_after_that_of_its_facet(kept: Kept, order: Order) -> None:
    played = play(
        kept,
        """facet F(n: Long) => (o: Long?, xs: [Long], note: String?) catch {
          k = Bad(n = $.n * 10)
          yield F(o = k.r)
          yield F(xs = [2])
        } andThen {
          yield F(xs = [1], note = "body")
        } andThen {
          b = Bad(n = $.n)
          yield F(o = b.r)
        }
        workflow W() => (o: Json) andThen {
          a = F(n = 1) catch { yield F(xs = [3]) }
          yield W(o = [a.o, a.xs, a.note])
        }""",
        order,
    )
    assert played.outputs == {"o": [None, [3], None]}
    assert played.states["0/a/facet-catch"] == "error"
    assert played.states["0/a/catch"] == "complete"


def test_an_error_in_a_catch_is_not_caught_by_it(kept: Kept) -> None:
    played = play(
        kept,
        """workflow W() => (o: Long) andThen {
          a = Bad(n = 1) catch { b = Bad(n = 2) yield Bad(r = b.r) }
          yield W(o = a.r)
        }""",
    )
    assert played.error == {"type": "Boom", "message": "boom", "step": "0/a/catch/b"}
    assert played.states["0/a"] == "error"


def test_the_catch_of_an_event_facet_with_a_body(kept: Kept) -> None:
    played = play(
        kept,
        """event facet E(n: Long) => (r: Long) catch { yield E(r = -1) }
        workflow W() => (o: Json) andThen {
          handler = E(n = 1)
          body = E(n = 2) andThen { b = Bad(n = body.r) yield E(r = b.r) }
          both = E(n = 3) catch { yield E(r = -2) } andThen { b = Bad(n = both.r) yield E(r = b.r) }
          part = E(n = 4) andThen { b = Bad(n = part.r) yield E(r = b.r) } catch { yield E(r = -3) }
          yield W(o = [handler.r, body.r, both.r, part.r])
        }""",
        answers={
            **ANSWERS,
            "E": lambda params: {"r": params["n"]} if params["n"] != 1 else failing()(params),
        },
    )
    assert played.outputs == {"o": [-1, -1, -1, -3]}


@pytest.mark.parametrize("order", ORDERS)
def test_the_catch_of_a_facet_makes_the_yields_of_a_step_body_void(
    kept: Kept, order: Order
) -> None:
    played = play(
        kept,
        """facet F(n: Long) => (xs: [Long]) catch { yield F(xs = [9]) }
        andThen { yield F(xs = [8]) }
        workflow W() => (xs: [Long], ys: [Long]) andThen {
          s = F(n = 1) andThen {
            a = Get(n = 2)
            yield F(xs = [a.r])
            yield W(xs = [a.r])
            b = Bad(n = 3)
          }
          yield W(ys = s.xs)
        }""",
        order,
    )
    assert played.outputs == {"xs": [], "ys": [9]}


def test_arguments_that_cannot_be_evaluated_are_for_the_catch_of_the_step(kept: Kept) -> None:
    played = play(
        kept,
        """facet F(n: Long) => (o: Long) catch { yield F(o = 1) } andThen { yield F(o = $.n) }
        workflow W(xs: [Long]) => (o: Long) andThen {
          a = F(n = $.xs[3]) catch { yield F(o = 2) }
          yield W(o = a.o)
        }""",
        xs=[1],
    )
    assert played.outputs == {"o": 2}


def test_a_skip_becomes_a_failure_where_its_cause_is_inside(kept: Kept) -> None:
    text = """workflow W() => (o: Long?, note: String?) %s andThen {
      a = Bad(n = 1)
    } catch { k = Keep(n = 1) } andThen {
      b = Get(n = a.r)
      yield W(o = b.r)
    }"""
    played = play(kept, text % "")
    assert played.status is ERROR
    assert played.error == {"type": "Boom", "message": "boom", "step": "0/a"}
    assert (played.states["0"], played.states["1"]) == ("complete", "skipped")
    caught = play(kept, text % "catch { yield W(note = error.message) }")
    assert caught.outputs == {"o": None, "note": "boom"}


def test_the_catch_of_a_clause_is_not_for_failures_elsewhere(kept: Kept) -> None:
    played = play(
        kept,
        """workflow W() => (o: Long) andThen { a = Bad(n = 1) } andThen {
          b = Get(n = a.r)
          yield W(o = b.r)
        } catch { yield W(o = 0) }""",
    )
    assert played.status is ERROR
    assert "1/catch" not in played.steps


# FailFast


@pytest.mark.parametrize("order", ORDERS)
def test_fail_fast_starts_nothing_more(kept: Kept, order: Order) -> None:
    driver = Driver(
        kept.store,
        f"""namespace t {{ {HEAD}
        workflow W() => (o: Long) with FailFast() andThen {{
          a = Bad(n = 1)
          b = Get(n = 2)
          c = Get(n = b.r)
          yield W(o = c.r)
        }} andThen foreach x in [1, 2, 3] limit 1 {{ d = Get(n = $.x) e = Get(n = d.r) }} }}""",
        ANSWERS,
        order=order,
    )
    run = driver.pause().run.id
    claims = sorted(driver.claim(), key=lambda claim: claim.task.name != "t.Bad")
    for claim in claims:
        driver.answer(claim)
        driver.advance()
    played = driver.played(run)
    assert played.status is ERROR
    assert played.paths("complete") == ["0/b", "1/0/d"]
    assert played.paths("skipped") == ["0/c", "0/yield-0", "1", "1/0", "1/0/e"]
    assert {played.steps[path].skipped_because for path in played.paths("skipped")} == {"0/a"}


def test_fail_fast_counts_assertions(kept: Kept) -> None:
    played = play(
        kept,
        """workflow W() => (o: Long) with FailFast() andThen {
          sys.assert(false)
          b = Get(n = 2)
          yield W(o = b.r)
        }""",
    )
    assert played.states["0/b"] in ("complete", "skipped")
    assert played.states["0/yield-0"] == "skipped"
    assert played.error["type"] == "AssertionFailed"


@pytest.mark.parametrize("order", ORDERS)
def test_fail_fast_leaves_catches_alone(kept: Kept, order: Order) -> None:
    played = play(
        kept,
        """workflow W() => (o: Long) with FailFast() catch {
          c = Get(n = 7)
          yield W(o = c.r)
        } andThen { a = Bad(n = 1) b = Get(n = a.r) yield W(o = b.r) }""",
        order,
    )
    assert played.outputs == {"o": 7}


@pytest.mark.parametrize("order", ORDERS)
def test_what_is_caught_is_no_failure_for_fail_fast(kept: Kept, order: Order) -> None:
    played = play(
        kept,
        """workflow W() => (o: Json) with FailFast() andThen {
          a = Keep(n = 1) andThen { x = Bad(n = 1) y = Get(n = x.r) }
            catch { z = Get(n = 3) sys.log(z = z.r) }
          b = Get(n = 1)
          c = Get(n = b.r) after a
          yield W(o = c.r)
        } andThen { d = Bad(n = 4) } catch { e = Get(n = 5) f = Get(n = e.r) }""",
        order,
    )
    assert played.outputs == {"o": 1}
    assert played.states["1/catch/f"] == "complete"


# What is not work fails too


def test_a_condition_without_a_value_is_an_error(kept: Kept) -> None:
    played = play(
        kept,
        """workflow W(j: Json) => (o: Long) andThen when {
          case $.j.yes => { yield W(o = 1) }
          case _ => { yield W(o = 2) }
        }""",
        j={},
    )
    assert played.error["type"] == "EvaluationError"
    assert "yes" in str(played.error["message"])
    wrong = play(
        kept,
        """workflow W(j: Json) => (o: Long) andThen when {
          case $.j => { yield W(o = 1) }
          case _ => { yield W(o = 2) }
        }""",
        j=3,
    )
    assert "Boolean" in str(wrong.error["message"])


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"r": "one"}, "t.Get.r"),
        ({}, "`r`"),
        ({"r": 1, "extra": 2}, "`extra`"),
        ({"r": 1, "note": 5}, "t.Get.note"),
    ],
)
def test_a_result_of_the_wrong_form_fails_the_step(
    kept: Kept, result: dict[str, Json], said: str
) -> None:
    text = "workflow W() => (o: Long) andThen { a = Get(n = 1) %s yield W(o = a.r) }"
    played = play(kept, text % "", answers={"Get": lambda params: result})
    assert played.status is ERROR
    assert said in str(played.error["message"])
    assert played.error["step"] == "0/a"
    caught = play(kept, text % "catch { yield Get(r = 0) }", answers={"Get": lambda params: result})
    assert caught.outputs == {"o": 0}


def test_a_script_result_of_the_wrong_form_fails(kept: Kept) -> None:
    played = play(
        kept,
        """workflow W() => (o: Long) andThen script { result["o"] = "text" }""",
    )
    assert "t.W.o" in str(played.error["message"])
