"""References: what they read, and of which type it is."""

from __future__ import annotations

import pytest

from afl.ir import model as ir
from afl.ir.types import DURATION, INT
from afl.lang.api import compile_sources
from afl.lang.checker.constants import NotConstant, evaluate
from afl.runtime.expressions import DeclaredTypes, EvaluationError, compile_expr, constant
from tests.runtime.expressing import (
    PARAMS,
    PRELUDE,
    Values,
    expression,
    program_of,
    yielded,
)


def test_steps_variables_and_errors_are_read_from_the_scope() -> None:
    program = program_of(
        """andThen foreach each in $.spans {
          measured = Measure(of = $.each.name, pause = 1s)
          yield W(out = [measured.time, measured.answer.a.b, $.each.times[0], measured.pause])
        } catch { yield W(out = [error.type, error.message, error]) }""",
        "[Json]",
    )
    scope = Values(
        steps={"time": 5, "answer": {"a": {"b": 6}}, "pause": 7},
        item={"name": "x", "times": [8]},
        failure={"type": "T", "message": "M"},
    )
    assert compile_expr(yielded(program))(scope) == [5, 6, 8, 7]
    (workflow,) = (facet for facet in program.facets if facet.kind == "workflow")
    caught = workflow.clauses[0].catch
    assert caught is not None
    assert isinstance(caught.body, ir.Block)
    (failed,) = caught.body.statements
    assert isinstance(failed, ir.Yield)
    assert compile_expr(failed.targets[0].args[0].value)(scope) == [
        "T",
        "M",
        {"type": "T", "message": "M"},
    ]


def test_a_missing_field_names_the_step() -> None:
    program = program_of(
        """andThen {
          measured = Measure(of = "x", pause = 1s)
          yield W(out = measured.answer.a.b)
        }"""
    )
    with pytest.raises(EvaluationError) as raised:
        compile_expr(yielded(program))(Values(steps={"answer": {"a": 3}}))
    assert raised.value.message == (
        "cannot read the field `b` of `measured.answer.a`, which is the Int 3"
    )


@pytest.mark.parametrize(
    ("text", "is_duration"),
    [
        ("$.wait", True),
        ("$.n", False),
        ("$.span.time", True),
        ("$.span.times[0]", True),
        ("$.spans[0].time", True),
        ("$.spans[0].times[1]", True),
        ("$.waits.a", True),
        ('$.waits["a"]', True),
        ("$.limits.a", False),
        ("$.j.wait", False),
        ("$.region.wait", True),
        ("$.each.time", True),
        ("measured.time", True),
        ("measured.pause", True),
        ("measured.of", False),
        ("measured.region.wait", True),
        ("measured.answer.time", False),
        ("extra.m.wait", True),
        ("extra.m.count", False),
        ("made.time", True),
        ("made.times[0]", True),
        ("[$.wait][0]", True),
        ("#{a: $.n}.a", False),
        ("($.later ?? 1s)", True),
        ("$.wait * 2", True),
        ("$.wait / 2s", False),
    ],
)
def test_declared_types_know_a_duration(text: str, is_duration: bool) -> None:
    program = compile_sources(
        [
            (
                "demo.afl",
                f"""namespace demo {{ {PRELUDE}
                  facet Extra(wait: Duration, count: Int)
                  workflow W({PARAMS}) => (out: [String]) with Region(zone = "b") as region
                  andThen foreach each in $.spans {{
                    measured = Measure(of = "x", pause = 1s)
                    extra = Measure(of = "y", pause = 1s) with Extra(wait = 1s, count = 1) as m
                    made = Span(name = "z", time = 1s, times = [])
                    yield W(out = ["" ++ {text}])
                  }}
                }}""",
            )
        ]
    ).program
    assert program is not None
    whole = yielded(program)
    assert isinstance(whole, ir.ListExpr)
    joined = whole.items[0]
    assert isinstance(joined, ir.ChainExpr)
    type = DeclaredTypes(program).within("demo.W")(joined.rest[0].operand)
    assert (type == DURATION) is is_duration


def test_declared_types_look_into_cases_bodies_and_catches() -> None:
    program = program_of(
        """andThen when {
          case $.yes => {
            first = Measure(of = "a", pause = 1s) andThen {
              second = Measure(of = "b", pause = 1s) catch {
                third = Measure(of = "c", pause = 1s)
                yield Measure(time = third.time, answer = 1)
              }
              yield Measure(time = second.time)
            }
            yield W(out = "" ++ first.time)
          }
          case _ => { yield W(out = 1) }
        }"""
    )
    type_of = DeclaredTypes(program).within("demo.W")
    steps = [
        "demo.W/0/case-0/first",
        "demo.W/0/case-0/first/0/second",
        "demo.W/0/case-0/first/0/second/catch/third",
    ]
    assert [type_of(ir.StepValue(step, "return", "time", ())) for step in steps] == [DURATION] * 3
    assert type_of(ir.StepValue("demo.W/0/elsewhere", "return", "time", ())) is None


def test_an_input_is_a_parameter_also_where_a_return_has_its_name() -> None:
    program = compile_sources(
        [
            (
                "demo.afl",
                """namespace demo {
                  facet Same(time: Duration) => (time: Int) andThen { yield Same(time = 1) }
                  workflow W() => (out: Int) andThen {
                    same = Same(time = 1s)
                    yield W(out = same.time)
                  }
                }""",
            )
        ]
    ).program
    assert program is not None
    types = DeclaredTypes(program)
    assert types.within("demo.Same")(ir.Input("time", ())) == DURATION
    assert types.within("demo.W")(yielded(program)) == INT


def test_without_types_a_reference_to_a_duration_is_a_number() -> None:
    expr = expression('"" ++ $.wait')
    assert compile_expr(expr)(Values({"wait": 1000})) == "1000"


@pytest.mark.parametrize(
    ("expr", "shown"),
    [
        (ir.Input("a", ("b",)), "$.a"),
        (ir.Variable("demo.W/0", "each", ()), "$.each"),
        (ir.StepValue("demo.W/0/step", "return", "a", ()), "step"),
        (ir.ErrorValue("demo.W/0/catch", "type"), "error"),
    ],
)
def test_a_constant_reads_nothing(expr: ir.Expr, shown: str) -> None:
    with pytest.raises(EvaluationError) as raised:
        constant(expr)
    assert raised.value.message == f"a constant cannot read `{shown}`"
    with pytest.raises(NotConstant):
        evaluate(expr)
