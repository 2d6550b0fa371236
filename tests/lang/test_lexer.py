"""The lexer reads everything, says what it cannot read, and never stops early without a word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afl.lang.diagnostics.reporter import Reporter
from afl.lang.lexer import MAX_TOKENS, tokenize
from afl.lang.parser import parse
from afl.lang.source import Source
from afl.lang.tokens import BAD, EOF, RESERVED, SIGNS, WORD, TokenStream


def lex(text: str) -> tuple[TokenStream, list[str]]:
    reporter = Reporter()
    tokens = tokenize(Source("flow.afl", text), reporter)
    return tokens, [diagnostic.code for diagnostic in reporter.diagnostics]


def pairs(text: str) -> list[tuple[str, str]]:
    tokens, codes = lex(text)
    assert codes == []
    return [(kind, tokens.text(i)) for i, kind in enumerate(tokens.kinds[:-1])]


@pytest.mark.parametrize("sign", SIGNS)
def test_every_sign_is_its_own_kind(sign: str) -> None:
    assert pairs(sign) == [(sign, sign)]


@pytest.mark.parametrize("word", sorted(RESERVED - {"script"}))
def test_every_reserved_word_is_its_own_kind(word: str) -> None:
    assert pairs(word) == [(word, word)]
    assert pairs(word + "_") == [(WORD, word + "_")]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("0", "int"),
        ("1_000", "int"),
        ("2.5", "double"),
        ("1e3", "double"),
        ("1.5E-3", "double"),
        ("30s", "duration"),
        ("1h30m", "duration"),
        ("500ms", "duration"),
        ('"a \\" b"', "string"),
        ('"""a "quoted" b"""', "text"),
        ('"""a\nb"""', "text"),
    ],
)
def test_literals(text: str, kind: str) -> None:
    assert pairs(text) == [(kind, text)]


def test_a_script_block_is_one_token_whatever_braces_its_strings_hold() -> None:
    block = "{ x = {'}': \"}\"}  # }\n y = '''}''' }"
    assert pairs("script python " + block + " case") == [
        ("script", "script"),
        (WORD, "python"),
        ("script block", block),
        ("case", "case"),
    ]


def test_script_as_a_field_starts_no_block() -> None:
    assert [text for _, text in pairs("$.script { }")] == ["$", ".", "script", "{", "}"]


def test_comments_are_kept_with_the_token_that_follows() -> None:
    text = "// one\na /* two */ b // three\n// four"
    tokens, codes = lex(text)
    assert codes == []
    kept = [(text[c.start : c.end], c.token, c.own_line) for c in tokens.comments]
    assert kept == [
        ("// one", 0, True),
        ("/* two */", 1, False),
        ("// three", 2, False),
        ("// four", 2, True),
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('"open', "AFL0003"),
        ('"""open', "AFL0003"),
        ('"escaped \\"', "AFL0003"),
        ("/* open", "AFL0004"),
        ("script { open", "AFL0009"),
        ("12abc", "AFL0006"),
        ("1__0", "AFL0006"),
        ("1.5s", "AFL0006"),
        ("'single'", "AFL0007"),
        ("\u201ccurly\u201d", "AFL0007"),
        ("# python", "AFL0008"),
        ("\u00e9t\u00e9", "AFL0002"),
        ("a & b", "AFL0002"),
        ("\x00", "AFL0002"),
        ('"\x00"', "AFL0002"),
        ("\ud800", "AFL0001"),
    ],
)
def test_what_cannot_be_read_is_said_once(text: str, code: str) -> None:
    _, codes = lex(text)
    assert code in codes
    assert len(codes) <= 2  # a lone surrogate is also an unexpected character


def test_a_run_of_strange_characters_is_one_mistake() -> None:
    _, codes = lex("@@@@~~~~\u20ac\u20ac")
    assert codes == ["AFL0002"]


def test_a_byte_order_mark_is_skipped() -> None:
    assert pairs("\ufeffuse") == [("use", "use")]


def test_a_file_that_is_too_large_is_not_read_to_the_end() -> None:
    file = parse(Source("flow.afl", "; " * (MAX_TOKENS + 10)))
    assert [diagnostic.code for diagnostic in file.diagnostics] == ["AFL0011"]
    assert not file.complete


@given(st.text(st.characters(codec=None), max_size=200))
def test_tokens_and_comments_cover_the_text(text: str) -> None:
    reporter = Reporter()
    tokens = tokenize(Source("x", text), reporter)
    assert tokens.kinds[-1] == EOF
    spans = sorted(
        [
            *zip(tokens.starts, tokens.ends, strict=True),
            *((c.start, c.end) for c in tokens.comments),
        ]
    )
    position = 0
    for start, end in spans:
        assert position <= start <= end
        gap = text[position:start].strip(" \t\r\n\f\ufeff")
        # what is left between tokens is white space, or a `#` comment that was reported
        assert gap == "" or gap.startswith("#")
        position = max(position, end)
    assert (BAD in tokens.kinds) <= bool(reporter.diagnostics)
