"""What one mistake must not drag in, and holes that once let a wrong program pass."""

from __future__ import annotations

import pytest

from afl.lang.api import MAX_ERRORS, compile_sources

HEAD = """
  enum Status { open, shut }
  event facet Get(key: String = "") => (x: Int?, token: String)
  event facet Tag(status: Status) => (ok: Boolean)
  facet Keep(n: Int)
  facet Opt(n: Int)
"""

ROWS = [
    (
        "a misspelt argument does not make its enum member unknown",
        "workflow W() andThen { t = Tag(statsu = open) }",
        ["AFL2001"],
    ),
    (
        "nor does a misspelt facet",
        "workflow W() andThen { t = Tagg(status = open) }",
        ["AFL1005"],
    ),
    (
        "nor a misspelt mixin",
        "workflow W() andThen { t = Get() with Mixx(status = open) }",
        ["AFL1005"],
    ),
    (
        "a prompt on a workflow is one mistake",
        'workflow W(n: Int) prompt { template "{n}" }',
        ["AFL4010"],
    ),
    (
        "a when without cases is one mistake",
        "workflow W() => (n: Int) andThen when { }",
        ["AFL3011"],
    ),
    (
        "a mixin that does not fit leaves nothing missing",
        'facet Text(n: String) workflow W() andThen { k = Keep() with Text(n = "x") }',
        ["AFL4008"],
    ),
    (
        "what was known of an earlier step is not known of one with its name",
        "workflow W() andThen { a = Get() } andThen when { case a.x != null => "
        "{ a = Get() t = Keep(n = a.x) sys.log(n = t.n) } case _ => {} }",
        ["AFL2005"],
    ),
    (
        "a foreach variable cannot hide a mixin",
        "workflow W(ms: [Int]) with Opt(n = 1) as m andThen foreach m in $.ms { g = Get() }",
        ["AFL1017"],
    ),
    (
        "after a step out of sight says where it is",
        "workflow W(ms: [Int]) andThen foreach m in $.ms { g = Get() } "
        "andThen { h = Get() after g }",
        ["AFL1016"],
    ),
    (
        "a log takes each name once",
        "workflow W() andThen { sys.log(a = 1, a = 2) }",
        ["AFL2003"],
    ),
    (
        "a log takes values, not steps",
        "workflow W() andThen { g = Get() sys.log(a = g) }",
        ["AFL2016"],
    ),
    (
        "foreach over a step asks for one of its attributes",
        "workflow W() andThen { g = Get() } andThen foreach x in g { h = Get() }",
        ["AFL2016"],
    ),
    (
        "constants are computed wherever they stand",
        "workflow W(n: Double) andThen { g = Get() } schedule s = W(n = 1 / 0) every 1h",
        ["AFL2023"],
    ),
    (
        "a step whose body replaces the callee's does not call it again",
        "facet Tree(n: Int) => (m: Int) andThen { left = Tree(n = 1) andThen "
        "{ yield Tree(m = 1) } yield Tree(m = left.m) }",
        [],
    ),
    (
        "a mixin of a call does not run",
        "facet Calc(n: Int) => (m: Int) andThen { yield Calc(m = $.n) } "
        "workflow W() => (m: Int) andThen { g = Get() with Calc(n = 1) as c "
        "yield W(m = g.c.m) }",
        ["AFL1013"],
    ),
    (
        "what a mixin of a call hands over can be read",
        "workflow W() => (m: Int) andThen { g = Get() with Opt(n = 1) as c yield W(m = g.c.n) }",
        [],
    ),
    (
        "a step cannot be handed over in its own body",
        "facet Wrap(n: Int) => (m: Int) facet Use(w: Wrap) "
        "workflow W() => (m: Int) andThen { p = Wrap(n = 1) andThen "
        "{ u = Use(w = p) yield Wrap(m = 1) } yield W(m = p.m) }",
        ["AFL3015"],
    ),
    (
        "a caught step is not handed over without its returns",
        "facet Use(g: Get) workflow W() andThen { g = Get() catch { sys.log(a = 1) } "
        "u = Use(g = g) sys.log(t = u.g.token) }",
        ["AFL2005"],
    ),
    (
        "the catch of an event facet yields what its handler would have given",
        "event facet Do() => (r: Int) catch { sys.log(a = 1) }",
        ["AFL3003"],
    ),
    (
        "a mixin without a body gets its returns from whoever mixes it in",
        "facet Note() => (n: String) workflow W() => (n: String) with Note() as a "
        'andThen { yield W(n = "x") }',
        ["AFL3003"],
    ),
    (
        "and a second target of a yield is how",
        "facet Note() => (n: String) workflow W() => (n: String) with Note() as a "
        'andThen { yield W(n = "x") with Note(n = "y") }',
        [],
    ),
    (
        "a facet stands in for one that it mixes in only if it has all of its attributes",
        "event facet Other(key: String) => (z: Int) with Get(key = $.key) as b "
        'facet Use(g: Get) workflow W() andThen { o = Other(key = "k") u = Use(g = o) '
        "sys.log(t = u.g.token) }",
        ["AFL2017"],
    ),
    (
        "a filter yields in some iterations only",
        "workflow W(xs: [Int]) => (ys: [Int]) andThen foreach x in $.xs { k = Keep(n = $.x) "
        "andThen when { case k.n > 3 => { yield W(ys = [$.x]) } case _ => {} } }",
        [],
    ),
    (
        "a facet does not check itself",
        "event facet Do() => (done: Boolean) with Effect(kind = irreversible, check = Do)",
        ["AFL4024"],
    ),
]


@pytest.mark.parametrize(
    ("program", "expected"), [row[1:] for row in ROWS], ids=[r[0] for r in ROWS]
)
def test_exactly_these_codes(program: str, expected: list[str]) -> None:
    compilation = compile_sources([("flow.afl", f"namespace shop {{{HEAD}{program}\n}}")])
    assert [diagnostic.code for diagnostic in compilation.diagnostics] == expected


def test_a_check_stops_when_nobody_reads_on() -> None:
    steps = "\n".join(f"s{i} = Gone{i}(n = 1)" for i in range(MAX_ERRORS * 2))
    compilation = compile_sources(
        [("flow.afl", f"namespace a {{ workflow W() andThen {{ {steps} }} }}")]
    )
    codes = [diagnostic.code for diagnostic in compilation.diagnostics]
    assert codes.count("AFL1005") == MAX_ERRORS
    assert codes.count("AFL0110") == 1
    assert compilation.program is None


def test_warnings_never_stop_a_check() -> None:
    steps = "\n".join(f"s{i} = Keep(n = {i})" for i in range(MAX_ERRORS * 2))
    compilation = compile_sources(
        [("flow.afl", f"namespace a {{ facet Keep(n: Int) workflow W() andThen {{ {steps} }} }}")]
    )
    assert len(compilation.warnings) == MAX_ERRORS * 2
    assert compilation.program is not None
