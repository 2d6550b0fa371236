"""The published grammar says what the oracle and the compiler's parser do."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from afl.lang.parser import parse
from afl.lang.source import Source
from afl.lang.tokens import CONTEXTUAL, RESERVED
from tests.lang.ebnf import (
    Choice,
    Grammar,
    GrammarError,
    Optional,
    Part,
    Ref,
    Repeat,
    Sentences,
    Sequence,
    Special,
    Terminal,
    read_ebnf,
    read_lark,
    refs,
)
from tests.lang.oracle import accepts

ROOT = Path(__file__).parents[2]
EBNF = read_ebnf((ROOT / "docs/reference/grammar.ebnf").read_text(encoding="utf-8"))
LARK = read_lark(Path(__file__).with_name("oracle.lark").read_text(encoding="utf-8"))

#: Rules that spell tokens letter by letter; the Lark grammar has regular expressions for them.
SPELLING = {"word", "exponent", "unit", "escape", "comment"}
TOKENS = {"name", "label", "python", "int", "double", "duration", "string"}
SENTENCES = 1500

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _spelt(rule: str, rng: Random) -> str:
    """A token of a rule that the EBNF spells out."""
    spelling = Sentences(
        {
            name: EBNF[name]
            for name in ("word", "int", "double", "duration", "string")
            if name in EBNF
        }
        | {name: EBNF[name] for name in SPELLING - {"comment"}},
        {
            "letter": lambda rng: rng.choice(_LETTERS),
            "digit": lambda rng: rng.choice("0123456789"),
            "hex": lambda rng: rng.choice("0123456789abcdefABCDEF"),
            "character": lambda rng: rng.choice("aZ09 {}[]()/*#'$;:,.äß→😀"),
            "line break": lambda rng: rng.choice(("\n", "\r\n")),
        },
    )
    return "".join(spelling.make(rule, rng, 12))


def _token(rule: str, rng: Random) -> str:
    """A token that keeps what the EBNF says of it in words, and whose value can exist."""
    while True:
        text = _spelt(rule, rng)
        if accepts(f"namespace a {{ facet F(a: Int = {text}) }}"):
            return text


def _name(rng: Random) -> str:
    while True:
        text = rng.choice(sorted(CONTEXTUAL)) if rng.random() < 0.3 else _spelt("word", rng)
        if text not in RESERVED:
            return text


WORDS = {
    "name": _name,
    "label": lambda rng: rng.choice(sorted(RESERVED)) if rng.random() < 0.3 else _name(rng),
    "python": lambda rng: rng.choice(("x = 1", "d = {'}': {}} # }\n", 's = """ { """', "")),
    "int": lambda rng: _token("int", rng),
    "double": lambda rng: _token("double", rng),
    "duration": lambda rng: _token("duration", rng),
    "string": lambda rng: _token("string", rng),
}


def test_reads_every_form() -> None:
    grammar = read_ebnf("""(* c *) a = "x" { b } | [ 'y"' ] ( c | ? any ? ) ;""")
    second = Sequence((Optional(Terminal('y"')), Choice((Ref("c"), Special("any")))))
    assert grammar == {"a": Choice((Sequence((Terminal("x"), Repeat(Ref("b")))), second))}
    assert read_lark('a: "x" (b)* [c]\n // d\n | e*\n\nB: /b/\n') == {
        "a": Choice(
            (Sequence((Terminal("x"), Repeat(Ref("b")), Optional(Ref("c")))), Repeat(Ref("e")))
        )
    }


@pytest.mark.parametrize("text", ["a = b", "a = ( b ;", "a = b ; a = c ;", "a = @ ;"])
def test_refuses_a_broken_grammar(text: str) -> None:
    with pytest.raises((GrammarError, IndexError)):
        read_ebnf(text)


def test_every_rule_is_defined_and_used() -> None:
    basic = {"letter", "digit", "hex", "character", "line break"}
    used = set().union(*map(refs, EBNF.values()))
    assert used - set(EBNF) == basic
    # `comment` may stand anywhere, `word` is what `name` and `label` describe
    assert set(EBNF) - used == {"file", "comment", "word"}


def test_both_grammars_have_the_same_rules() -> None:
    assert {name for name in LARK if not name.startswith("_")} == set(EBNF) - SPELLING


@pytest.mark.parametrize("rule", sorted(set(EBNF) - SPELLING - TOKENS))
def test_both_grammars_give_a_rule_the_same_shape(rule: str) -> None:
    assert _without_prose(LARK[rule]) == _without_prose(_expected(EBNF, rule))


def _expected(grammar: Grammar, rule: str) -> Part:
    """A rule of the EBNF, except for the three that the Lark grammar words otherwise."""
    return {
        "script": Sequence((Terminal("script"), Optional(Ref("name")), Ref("python"))),
        "case": Sequence((Terminal("case"), Ref("expr"), Terminal("=>"), Ref("block"))),
    }.get(rule, grammar[rule])


def _without_prose(part: Part) -> Part:
    """A part without what the EBNF says in words: `;` and the comma at the end of a list."""
    match part:
        case Sequence(parts):
            kept = [_without_prose(p) for p in parts if p != Optional(Terminal(","))]
            return kept[0] if len(kept) == 1 else Sequence(tuple(kept))
        case Choice(options):
            kept = [_without_prose(option) for option in options if option != Terminal(";")]
            return kept[0] if len(kept) == 1 else Choice(tuple(kept))
        case Optional(inner):
            return Optional(_without_prose(inner))
        case Repeat(inner):
            return Repeat(_without_prose(inner))
        case _:
            return part


def test_sentences_are_accepted_by_oracle_and_parser_and_use_every_rule() -> None:
    rng = Random(20)
    sentences = Sentences(
        {name: part for name, part in EBNF.items() if name not in SPELLING}, WORDS
    )
    for _ in range(SENTENCES):
        text = " ".join(sentences.make("file", rng, rng.randint(4, 30)))
        assert accepts(text), text
        assert _parser_accepts(text), text
    assert sentences.used == set(EBNF) - SPELLING


def _parser_accepts(text: str) -> bool:
    # AFL0010 and AFL0112 are about values, not about form: the grammar cannot say them.
    codes = {found.code for found in parse(Source("sentence", text)).diagnostics if found.is_error}
    return codes <= {"AFL0010", "AFL0112"}
