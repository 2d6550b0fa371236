"""Comments wherever they may stand: in every gap between two tokens of programs that use all of the
grammar, in every shape."""

from __future__ import annotations

from itertools import pairwise

import pytest

from afl.lang.parser import parse
from afl.lang.source import Source
from afl.lang.tokens import SCRIPT
from tests.lang.formatting import checked_format, read

PROGRAMS = {
    "data": (
        "/** n */ namespace a.b { use c.d use e; schema S { a: Int, b: {String: [Int?]?} = #{}, }"
        " enum E { x, in } enum N {} }"
    ),
    "constants": (
        'namespace a { implicit i = F(x = 1,) /** d */ implicit j = G() schedule s = W(x = "y")'
        ' cron "* * * * *" zone "UTC" schedule t = W() every 1h30m }'
    ),
    "signature": (
        "namespace a { event facet F(a: Int = -1, b: c.D?) => (e: Long, f: String,)"
        ' with Retry(on = ["x"]) as r with Queue() /** g */ facet G() => () }'
    ),
    "prompt": (
        'namespace a { event facet P() with Q() prompt { system "s"; template """\n  x\n   y"""'
        ' model "m" tools [T, u.V, "mcp:s/t",] } event facet O() prompt {} }'
    ),
    "scripts": (
        "namespace a { facet F() catch { yield F() } script python {\n x = {}\n} andThen"
        " script { y } catch {} event facet G() script {} }"
    ),
    "steps": (
        "namespace a { workflow W() with A() andThen { s = F(a = 1, b = 2,) with M(x = 1) as m"
        " with N() after p, q catch { x = F() } andThen { y = G() } t = F(); u = F() after s"
        " yield W(r = 1) with A() sys.log(a = 1, b = 2) sys.assert(true) } }"
    ),
    "clauses": (
        "namespace a { workflow W() andThen foreach x in $.xs limit 5 + 1 { yield W(y = [$.x]) }"
        " andThen when { case $.a > 1 => { yield W() }; case _ => { a = F() yield W() } }"
        " catch when { case _ => {} } andThen { s = F() catch when {} } }"
    ),
    "expressions": (
        'namespace a { facet F(x: Json = [$.a.b + c.d[0].e["k"].f * (1.5 - 2) % 3,'
        ' "s" ++ t ?? null, !(a && b) || - - 1 not in [], #{k: true, "l": 30s, in: [false]},'
        " a contains b, (1)[0]],) }"
    ),
    "wide": (
        "namespace a { workflow Wide(first_parameter: String, second_parameter: String) => (a: Int)"
        " with Retry(max_attempts = 3) with Timeout(minutes = 20) andThen { step = Facet(first ="
        " $.first_parameter ++ $.second_parameter ++ $.first_parameter ++ $.second_parameter) } }"
    ),
}

SHAPES = [
    "// c\n",
    "/* c */",
    "/* c */\n",
    "\n// c\n",
    "\n/* c */",
    "\n\n/* c */\n\n",
    "/* c\n d */",
    "/** c */",
    "\n/** c\n d */\n",
    "/* c */ // d\n",
    "// c\n /* d */",
    "// c\n\n // d\n",
    "\n/* c */ /* d */ // e\n\n // f\n/* g */",
]


def gaps(text: str) -> list[int]:
    """Where a comment may stand: before every token but the block of a script and its language."""
    stream = read(text).tokens
    return [
        stream.starts[index]
        for index, kind in enumerate(stream.kinds)
        if kind != SCRIPT and (index == 0 or stream.kinds[index - 1] != "script")
    ]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_comment_in_every_gap(program: str, shape: str) -> None:
    text = PROGRAMS[program]
    for gap in gaps(text):
        checked_format(f"{text[:gap]} {shape} {text[gap:]}")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_comments_in_all_gaps_at_once(program: str, shape: str) -> None:
    text = PROGRAMS[program]
    for gap in reversed(gaps(text)):
        text = f"{text[:gap]} {shape} {text[gap:]}"
    checked_format(text)


@pytest.mark.parametrize("program", PROGRAMS)
def test_comments_in_two_neighbouring_gaps(program: str) -> None:
    text = PROGRAMS[program]
    places = gaps(text)
    for first, second in pairwise(places):
        for before, after in (("// c\n", "/* d */"), ("/* c */", "// d\n"), ("\n// c\n", "// d\n")):
            checked_format(f"{text[:first]}{before}{text[first:second]} {after} {text[second:]}")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_semicolon_in_every_gap_that_takes_one(program: str) -> None:
    text = PROGRAMS[program]
    taken = 0
    for gap in gaps(text):
        for sign in (" ; ", " /** c */ ; // d\n", "\n// c\n;;\n/* d */ "):
            changed = text[:gap] + sign + text[gap:]
            if not any(found.is_error for found in parse(Source("test.afl", changed)).diagnostics):
                checked_format(changed)
                taken += 1
    assert taken > 0
