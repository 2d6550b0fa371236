"""The compiler's parser and the oracle agree on what belongs to the language."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings

from afl.lang.parser import parse
from afl.lang.source import Source
from tests.lang.generate import SourceText, programs, random_program
from tests.lang.mutate import mutate_letters, mutate_tokens
from tests.lang.oracle import accepts, cut_scripts

#: These are about values and sizes, not about form: no grammar says them.
BEYOND_FORM = {"AFL0010", "AFL0112"}


def parser_accepts(text: str) -> bool:
    found = {d.code for d in parse(Source("text", text)).diagnostics if d.is_error}
    return found <= BEYOND_FORM


def body(statements: str) -> str:
    return f"namespace a {{ facet F(a: Int) andThen {{ {statements} }} }}"


ACCEPTED = [
    "",
    ";",
    "\ufeffnamespace a {}",
    "namespace a . b /* c */ . use { use c; ; }",
    "namespace a { schema S { in: Int, use: String? = null, _: {String: [Double?]}, } }",
    "namespace a { enum E { a, script, } enum F {} }",
    "namespace a { schema S { x: Int? } }",
    "namespace a { schema S { x: Int? = 1, y: [Int?]?, } }",
    "namespace a { event facet F() script /* c */ { {} } event facet G() script python // {\n {} }",
    'namespace a { schedule s = W() every 5m zone "UTC" schedule t = b.W(x = 1,) cron "" }',
    'namespace a { schedule s = W() at "" start "" end "" jitter 5m overlap x catch_up y }',
    "namespace a { schedule s = W() every 5m catch_up y schema catch_up { at: Int } }",
    'namespace a { event facet F(prompt: Int) prompt { tools [a.b, "x",]; system """ a"" """ } }',
    'namespace a { event facet F(script: {String: Int}) script python{ "}" # } \n } }',
    "namespace a { facet F() => () with R() as r with Q() catch when {} andThen {} }",
    "namespace a { facet F() andThen foreach x in $.script limit limit {} }",
    "namespace a { facet F() andThen when { case _ => {} case _ + 1 => {}; } catch {} }",
    "namespace a { facet F() script { {} } andThen script { {} } }",
    body(
        ";s = F(a = 1,);; t = F() after s yield F(a = 1) with b.G() sys.log(a = 1) sys.assert(true)"
    ),
    body("sys = F() limit = F(a = contains contains contains, b = not not in not)"),
    body(
        's = F(a = -!-x[0].in["k"] ?? #{in: 1, "b": [],} ++ (1.5e-3 - 1h) * 1_0 % 2 / 3 || x && y)'
    ),
    body(r's = F(a = "\u{1F600}\u0041\/\"\\", b = 1.e5, c = "a" startsWith "b")'),
]
REFUSED = [
    "namespace",
    "facet F()",
    "namespace a { namespace b {} }",
    "namespace a { use }",
    "namespace a { facet F(,) }",
    "namespace a { schema S { x: Int y: Int } }",
    "namespace a { schema use {} }",
    'namespace a { event facet F() prompt { temperature "1" } }',
    "namespace a { event facet F() script { { } }",
    "namespace a { facet F() andThen {} catch {} catch {} }",
    "namespace a { schedule s = W() }",
    "namespace a { schedule s = W() every 5m overlap x jitter 5m }",
    "namespace a { schedule s = W() every 5m overlap }",
    "namespace a { schedule s = W() every 5m jitter x }",
    body("F()"),
    body("s = F(1)"),
    body("s = F(a = 1 b = 2)"),
    body("s = F(a = 1 use = 2)"),
    "namespace a { schema S { x: Int facet: Int } }",
    body("s = F(a = x == y == z)"),
    body("s = F() after a,"),
    body("sys.assert(true,)"),
    body("sys.print()"),
    body("case = F()"),
    body("s = F(a = +1)"),
    body("s = F(a = $)"),
    body("s = F(a = 1__0)"),
    body("s = F(a = 1s1h)"),
    body("s = F(a = 1e5.5)"),
    body(r's = F(a = "\q")'),
    body(r's = F(a = "\ud800")'),
    body('s = F(a = "open)'),
    body("/* open"),
    "namespace a {} \ud800",
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_both_accept(text: str) -> None:
    assert accepts(text)
    assert parser_accepts(text)


@pytest.mark.parametrize("text", REFUSED)
def test_both_refuse(text: str) -> None:
    assert not accepts(text)
    assert not parser_accepts(text)


def test_scripts_are_cut_out_whole() -> None:
    text = 'a.script { script /* { */ py { \'{\' """}""" # }\n {} } }'
    assert cut_scripts(text) == "a.script { script /* { */ py {|} }"
    assert cut_scripts("script { '") is None


@settings(max_examples=50, deadline=None)
@given(programs())
def test_both_accept_generated_programs(program: list[SourceText]) -> None:
    for _, text in program:
        assert accepts(text)
        assert parser_accepts(text)


@pytest.mark.parametrize("seed", range(8))
def test_both_agree_on_damaged_programs(seed: int) -> None:
    rng = Random(seed)
    verdicts = []
    for _ in range(250):
        text = rng.choice(random_program(rng, rng.randint(1, 4)))[1]
        damage = mutate_letters if rng.random() < 0.2 else mutate_tokens
        damaged = damage(text, rng, rng.choice((1, 1, 1, 2, 3)))
        verdicts.append(accepts(damaged))
        assert parser_accepts(damaged) == verdicts[-1], damaged
    # damage that never or always matters would prove nothing
    assert 10 < sum(verdicts) < 240
