"""Compiled parts written as AFL mean what they meant."""

from __future__ import annotations

import pytest

from afl.cli.unparse import expression_text, signature_text, type_text
from afl.ir import model as ir
from afl.ir.types import SchemaRef
from afl.lang.api import compile_sources

_TEMPLATE = """
namespace demo {{
  schema S {{ a: Int, b: [S?] = [] }}
  enum E {{ one, two }}
  event facet F(x: Int) => (n: Int, s: S, l: [String], m: {{String: Int}}, t: String?, b: Boolean)
  workflow W(p: Int, q: Double, e: E, d: Duration) => (out: Json) andThen {{
    f = F(x = 1)
    yield W(out = {expression})
  }}
}}
"""


def _compile(expression: str) -> ir.Expr:
    compilation = compile_sources([("a.afl", _TEMPLATE.format(expression=expression))])
    assert compilation.program is not None, [each.message for each in compilation.errors]
    facet = next(each for each in compilation.program.facets if each.name == "demo.W")
    body = facet.clauses[0].body
    assert isinstance(body, ir.Block)
    statement = body.statements[-1]
    assert isinstance(statement, ir.Yield)
    return statement.targets[0].args[0].value


@pytest.mark.parametrize(
    "expression",
    [
        "1",
        "2.5",
        "-3",
        "true",
        "null",
        '"a \\"b\\" \\\\ \\n ключ"',
        "$.p",
        "f.n",
        "f.s.a",
        "$.p + 2 * 3 - 4",
        "($.p + 2) * 3",
        "$.p - (2 - 3)",
        "-($.p + 1)",
        "!(f.b && true)",
        "f.b || true && false",
        "(f.b || true) && false",
        "$.p == 1 || $.p > 2 && !f.b",
        '(f.t ?? "x") ++ "y"',
        '"a" in f.l',
        '"a" not in f.l',
        '"abc" startsWith "a"',
        "f.l[0]",
        "f.s.b[$.p + 1]",
        "[1, 2, $.p]",
        '#{a: 1, "b c": [f.n]}',
        "$.e == two",
        "$.d > 1h30m",
    ],
)
def test_an_expression_survives(expression: str) -> None:
    compiled = _compile(expression)
    text = expression_text(compiled, "demo")
    assert _compile(text) == compiled


def test_parentheses_only_where_needed() -> None:
    assert expression_text(_compile("((($.p))) + (2 * 3)")) == "$.p + 2 * 3"
    assert expression_text(_compile("($.p + 2) * 3")) == "($.p + 2) * 3"


def test_types_are_short_at_home() -> None:
    assert type_text(SchemaRef("demo.S"), "demo") == "S"
    assert type_text(SchemaRef("demo.S"), "other") == "demo.S"
    assert type_text(SchemaRef("demo.sub.S"), "demo") == "demo.sub.S"


def test_a_signature_with_everything() -> None:
    text = (
        "event facet Act(id: String, size: Size = small) => (done: Boolean) "
        'with Effect(kind = irreversible, check = Done) with Queue(name = "q") '
        "with Base(id = $.id) as base"
    )
    compilation = compile_sources(
        [
            (
                "a.afl",
                "namespace demo {\n"
                "  enum Size { small }\n"
                "  event facet Done(id: String) => (done: Boolean)\n"
                "  event facet Base(id: String) => (x: String)\n"
                f"  {text}\n"
                "}\n",
            )
        ]
    )
    assert compilation.program is not None, [each.message for each in compilation.errors]
    facet = next(each for each in compilation.program.facets if each.name == "demo.Act")
    assert signature_text(facet) == text
