"""One mistake, one message: the parser finds its way again, and later passes do not pile on."""

from __future__ import annotations

import pytest

from afl.lang.api import Compilation, compile_sources

HEAD = """\
  event facet Load(id: String) => (total: Double, lines: [String])
  event facet Ship(id: String, weight: Double = 1.0) => (tracking: String)
"""


def compile_body(body: str, head: str = HEAD) -> Compilation:
    text = "namespace shop {\n" + head + body + "\n}\n"
    return compile_sources([("flow.afl", text)])


def codes(compilation: Compilation) -> list[str]:
    return [diagnostic.code for diagnostic in compilation.diagnostics]


def workflow(*statements: str) -> str:
    inner = "\n".join(f"    {statement}" for statement in statements)
    return f"  workflow W(id: String) => (t: String) andThen {{\n{inner}\n  }}"


GOOD = "yield W(t = s.tracking)"


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        pytest.param(["s = Ship(id = $.id"], ["AFL0103"], id="call not closed"),
        pytest.param(["s = Ship(id = )"], ["AFL0101"], id="argument without value"),
        pytest.param(["s = Ship(id = $.id weight = 2.0)"], ["AFL0102"], id="comma forgotten"),
        pytest.param(["s = Ship(id: $.id)"], ["AFL0101"], id="colon for equals"),
        pytest.param(["s = Ship($.id)"], ["AFL0105"], id="positional argument"),
        pytest.param(['s = Ship(id = "open)'], ["AFL0003"], id="string without end"),
        pytest.param(["s = Ship(id = 'x')"], ["AFL0007"], id="single quotes"),
        pytest.param(["s = Ship(id = $.id) # note"], ["AFL0008"], id="hash comment"),
        pytest.param(["s = Ship(id = $id)"], ["AFL0101"], id="dollar without dot"),
        pytest.param(["s = ", "Ship(id = $.id)"], [], id="line breaks mean nothing"),
        pytest.param(
            ["Ship(id = $.id)", "s = Ship(id = $.id)"], ["AFL0101"], id="call without name"
        ),
        pytest.param(["let s = Ship(id = $.id)"], ["AFL0101"], id="let"),
        pytest.param(["s = Ship(id = Load(id = $.id))"], ["AFL0101"], id="call in an expression"),
        pytest.param(["s = Shipp(id = $.id)"], ["AFL1005"], id="unknown facet, results unknown"),
        pytest.param(["s = Ship(idd = $.id)"], ["AFL2001"], id="misspelt argument"),
        pytest.param(["s = Ship(id = $.idd)"], ["AFL1012"], id="misspelt input"),
        pytest.param(["s = Ship(id = $.id, weight = 1 +)"], ["AFL0101"], id="operand missing"),
        pytest.param(["s = Ship(id = $.id) after"], ["AFL0101"], id="after without a step"),
        pytest.param(["s = Ship(id = $.id) with Retry(max_attempts = )"], ["AFL0101"], id="policy"),
        pytest.param(["s = Ship(id = $.id)]"], ["AFL0101"], id="stray bracket"),
    ],
)
def test_one_mistake_in_a_step(statements: list[str], expected: list[str]) -> None:
    assert codes(compile_body(workflow(*statements, GOOD))) == expected


@pytest.mark.parametrize(
    ("declarations", "expected"),
    [
        pytest.param("facet Keep(n Int)", ["AFL0101"], id="type without colon"),
        pytest.param("facet Keep(n: Int m: Int)", ["AFL0102"], id="comma between parameters"),
        pytest.param("facet Keep(n: )", ["AFL0101"], id="type missing"),
        pytest.param("facet Keep(n: Int", ["AFL0103"], id="parameters not closed"),
        pytest.param("facet Keep(n: Int) -> (m: Int?)", ["AFL0101"], id="other arrow"),
        pytest.param("schema Keep { n: Int m: Int }", ["AFL0102"], id="comma between fields"),
        pytest.param("enum Keep { a b }", ["AFL0102"], id="comma between members"),
        pytest.param("facet in(n: Int)", ["AFL0104"], id="reserved name"),
        pytest.param("def Keep(n: Int)", ["AFL0101"], id="def"),
        pytest.param("facet Keep(n: Int) = 3", ["AFL0101"], id="body that is none"),
        pytest.param("facet (n: Int)", ["AFL0101"], id="name missing"),
    ],
)
def test_one_mistake_in_a_declaration(declarations: str, expected: list[str]) -> None:
    good = workflow("s = Ship(id = $.id)", GOOD)
    assert codes(compile_body(f"  {declarations}\n{good}")) == expected


def test_a_damaged_declaration_still_counts_as_declared() -> None:
    body = "  event facet Pack(id: String, n: Int? => (box: String)\n" + workflow(
        "p = Pack(id = $.id)", "s = Ship(id = p.box)", GOOD
    )
    assert codes(compile_body(body)) == ["AFL0103"]


def test_a_block_that_is_not_closed_costs_one_message() -> None:
    body = """\
  workflow A(id: String) => (t: String) andThen {
    s = Ship(id = $.id)
    yield A(t = s.tracking)

  workflow B(id: String) => (t: String) andThen {
    s = Ship(id = $.id)
    yield B(t = s.tracking)
  }
"""
    assert codes(compile_body(body)) == ["AFL0103"]


def test_three_independent_mistakes_give_three_messages() -> None:
    body = workflow(
        "order = Load(id = $.id)",
        "s = Ship(id = order.id, wieght = order.total)",
        "note = Ship(id = 'late')",
        "t = Ship(id = order.totall)",
        GOOD,
    )
    compilation = compile_body(body)
    assert codes(compilation) == ["AFL2001", "AFL0007", "AFL1013"]
    lines = [diagnostic.primary.span.line for diagnostic in compilation.diagnostics]
    assert lines == [6, 7, 8]
    assert all(diagnostic.suggestions for diagnostic in compilation.diagnostics)


def test_a_damaged_body_is_not_blamed_for_what_it_may_hold() -> None:
    # the yield cannot be read, so nobody is told that `t` is never yielded
    body = workflow("s = Ship(id = $.id)", "yield W(t = )")
    assert codes(compile_body(body)) == ["AFL0101"]


def test_warnings_wait_until_the_file_can_be_read() -> None:
    body = "  facet Keep(n: Int)\n" + workflow("s = Ship(id = )", "k = Keep(n = 1)", GOOD)
    assert codes(compile_body(body)) == ["AFL0101"]


def test_a_broken_file_does_not_hide_mistakes_in_another() -> None:
    first = "namespace a { facet F(n: Int) => (m: Int) andThen { yield F(m = ) } }"
    second = (
        "namespace b { workflow W() => (x: Int) andThen { f = a.F(n = true) yield W(x = f.m) } }"
    )
    compilation = compile_sources([("a.afl", first), ("b.afl", second)])
    assert codes(compilation) == ["AFL0101", "AFL2004"]
    assert [d.primary.span.source.name for d in compilation.diagnostics] == ["a.afl", "b.afl"]


def test_getting_lost_does_not_use_up_the_nesting() -> None:
    # thirty damaged arguments, each lost two levels down
    steps = [f"s{i} = Ship(id = ((1 + ), weight = 1.0)" for i in range(30)]
    found = codes(compile_body(workflow(*steps)))
    assert set(found) == {"AFL0101"}
    assert len(found) == 30
