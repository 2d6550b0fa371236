"""Expressions of a workflow, compiled and evaluated on plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from afl.ir import model as ir
from afl.ir.values import Json
from afl.lang.api import compile_sources
from afl.runtime.expressions import DeclaredTypes, EvaluationError, compile_expr

LONGEST = 2**63 - 1

PRELUDE = """
  enum Level { low, high }
  schema Span { name: String, time: Duration, times: [Duration], note: String? }
  event facet Region(zone: String) => (wait: Duration)
  event facet Measure(of: String, pause: Duration) => (time: Duration, span: Span?, answer: Json)
    with Region(zone = "a") as region
"""
PARAMS = """
    n: Int, big: Long, x: Double, s: String, yes: Boolean, j: Json, k: Json, wait: Duration,
    later: Duration?, level: Level, names: [String], nums: [Int], limits: {String: Int},
    waits: {String: Duration}, span: Span, spans: [Span], maybe: String?, share: Double?
"""


@dataclass
class Values:
    """A scope made of plain values."""

    inputs: Mapping[str, Json] = field(default_factory=dict)
    steps: Mapping[str, Json] = field(default_factory=dict)
    item: Json = None
    failure: Mapping[str, Json] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)

    def input(self, name: str) -> Json:
        self.read.append(name)
        return self.inputs[name]

    def variable(self, clause: str, name: str) -> Json:
        assert (clause, name) == ("demo.W/0", "each")
        return self.item

    def step(self, ref: ir.StepValue) -> Json:
        assert ref.step == "demo.W/0/measured"
        return self.steps[ref.name]

    def error(self, ref: ir.ErrorValue) -> Json:
        assert ref.catch.endswith("/catch")
        return self.failure[ref.field] if ref.field else dict(self.failure)


def program_of(body: str, returns: str = "Json") -> ir.Program:
    source = f"""namespace demo {{ {PRELUDE}
      workflow W({PARAMS}) => (out: {returns}) with Region(zone = "b") as region {body}
    }}"""
    compilation = compile_sources([("demo.afl", source)])
    assert compilation.program is not None, [d.message for d in compilation.errors]
    return compilation.program


def yielded(program: ir.Program, clause: int = 0) -> ir.Expr:
    (workflow,) = (facet for facet in program.facets if facet.kind == "workflow")
    body = workflow.clauses[clause].body
    assert isinstance(body, ir.Block)
    (found,) = (part for part in body.statements if isinstance(part, ir.Yield))
    return found.targets[0].args[0].value


def expression(text: str) -> ir.Expr:
    return yielded(program_of(f"andThen {{ yield W(out = {text}) }}"))


def run(text: str, /, **inputs: Json) -> Json:
    """The value of an expression of the workflow's inputs."""
    program = program_of(f"andThen {{ yield W(out = {text}) }}")
    return compile_expr(yielded(program), DeclaredTypes(program).within("demo.W"))(Values(inputs))


def same(left: Json, right: Json) -> bool:
    """Equal, and of the same kinds all the way down."""
    return repr(left) == repr(right)


def outcome(expr: ir.Expr, scope: Values | None = None) -> Json | EvaluationError:
    """What evaluating an expression comes to."""
    try:
        return compile_expr(expr)(scope or Values())
    except EvaluationError as error:
        return error
