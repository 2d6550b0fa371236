"""The formatter's layout, and what it must leave alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from afl.lang.formatter import format_source
from afl.lang.parser.cursor import MAX_NESTING
from afl.lang.source import Source
from afl.lang.tree import Namespace
from tests.lang.formatting import checked_format, comment_texts, read
from tests.lang.tree_equality import same_tree, tree_difference

GOLDEN = Path(__file__).parent / "golden" / "format"
CASES = sorted(path.name.removesuffix(".in.afl") for path in GOLDEN.glob("*.in.afl"))


def golden(case: str, side: str) -> str:
    return (GOLDEN / f"{case}.{side}.afl").read_text(encoding="utf-8")


def in_block(statements: str) -> str:
    return f"namespace a {{\n  workflow W() andThen {{\n{statements}  }}\n}}\n"


@pytest.mark.parametrize("case", CASES)
def test_golden_files(case: str) -> None:
    assert checked_format(golden(case, "in")) == golden(case, "out")


def test_golden_files_are_there() -> None:
    assert {"comments", "layout", "listings", "review", "texts"} <= set(CASES)


@pytest.mark.parametrize("case", CASES)
def test_line_ends_do_not_matter(case: str) -> None:
    assert checked_format(golden(case, "in").replace("\n", "\r\n")) == golden(case, "out")


@pytest.mark.parametrize("case", CASES)
def test_every_token_on_its_own_line(case: str) -> None:
    stream = read(golden(case, "in")).tokens
    pieces = []
    for index in range(len(stream.kinds)):
        pieces.append(stream.text(index))
        # a script's block must follow its word
        pieces.append(" " if stream.kinds[index] == "script" else "\n")
    exploded = "".join(pieces)
    assert checked_format(exploded).count("\n") < exploded.count("\n") / 2


@pytest.mark.parametrize("case", CASES)
def test_lines_are_short_and_end_without_blanks(case: str) -> None:
    for line in golden(case, "out").split("\n"):
        assert line == line.rstrip()
        assert len(line) <= 100


@pytest.mark.parametrize(
    ("text", "formatted"),
    [
        ("", ""),
        (" \n\n ", ""),
        ("\ufeffnamespace a {}", "namespace a {}\n"),
        ("\n\n// only\n\n\n\n/* comments */", "// only\n\n/* comments */\n"),
        (";;namespace a {;};", "namespace a {}\n"),
        ("namespace a {} namespace b {}", "namespace a {}\n\nnamespace b {}\n"),
        ("namespace a {} // one\nnamespace b {}", "namespace a {} // one\n\nnamespace b {}\n"),
    ],
)
def test_small_files(text: str, formatted: str) -> None:
    assert checked_format(text) == formatted


def test_blank_lines_between_statements_are_kept_but_not_piled_up() -> None:
    text = in_block("\n\n    a = W()\n    b = W()\n\n\n\n    // c\n\n\n    c = W()\n\n")
    assert checked_format(text) == in_block("    a = W()\n    b = W()\n\n    // c\n\n    c = W()\n")


def test_a_line_of_exactly_the_width_is_not_broken() -> None:
    name = "x" * (100 - len("    s = F(value = )"))
    fits = in_block(f"    s = F(value = {name})\n")
    assert checked_format(fits) == fits
    too_long = in_block(f"    s = F(value = {name}x)\n")
    assert checked_format(too_long) == in_block(f"    s = F(\n      value = {name}x,\n    )\n")


def test_a_case_stays_on_one_line_only_if_it_was_there() -> None:
    def when(block: str) -> str:
        return f"namespace a {{\n  workflow W() andThen when {{\n    case _ => {block}\n  }}\n}}\n"

    short = when("{ yield W() }")
    assert checked_format(short) == short
    broken = when("{\n      yield W()\n    }")
    assert checked_format(broken) == broken
    assert checked_format(when("{ a = W() b = W() }")) == when(
        "{\n      a = W()\n      b = W()\n    }"
    )
    value = "x" * 80
    assert checked_format(when(f"{{ yield W(a = {value}) }}")) == when(
        f"{{\n      yield W(a = {value})\n    }}"
    )


def test_errors_are_answered_instead_of_a_text() -> None:
    result = format_source(Source("bad.afl", "namespace a { facet F( }"))
    assert result.text is None
    assert result.errors
    assert all(error.is_error for error in result.errors)


def test_warnings_do_not_stand_in_the_way() -> None:
    result = format_source(Source("idle.afl", "namespace a { /** idle */ }"))
    assert result.text == "namespace a { /** idle */ }\n"
    assert result.errors == ()


def test_a_semicolon_stays_where_it_keeps_a_doc_comment_away() -> None:
    formatted = checked_format("namespace a { facet F() /** idle */; facet G() }")
    assert ";" in formatted
    namespace = read(formatted).items[0]
    assert isinstance(namespace, Namespace)
    assert [item.doc for item in namespace.declarations] == [None, None]


@pytest.mark.parametrize(
    "value",
    [
        '"""one"""',
        '"""   """',
        '"""\n"""',
        '"""\n\n\n"""',
        '"""first\n    second"""',
        '"""   first  \n\tsecond\n\t\tthird  \n"""',
        '"""\n      a\n        b\n   c"""',
        '"""\n  a \\n \\"\\"\\" b\n\n   \n  """',
        '"""\r\n  a\r\n   b\r\n"""',
        '"""\n  a\r\r\n  b\n"""',
        '"""\n \u00a0a\n \u2003\n  b\n"""',
    ],
)
def test_texts_keep_their_value(value: str) -> None:
    checked_format(f"namespace a {{ facet F(x: String = {value}, y: Int) }}")
    checked_format(in_block(f"a = F(x = [1, {value} ++ {value}])\n"))


@pytest.mark.parametrize(
    "code",
    [
        "",
        "  ",
        "x = 1",
        " x = 1 ",
        "\n\n",
        "\n  x = 1\n  if x:\n    y = {1: '}'}\n",
        "x = 1\n  y = 2",
        "\n\tx = 1\n\n\ty = '''\n  z\n'''\n\t",
        " # }\n",
        "\r\n  x = 1\r\n",
        "\n  x = 1\r\r\n",
    ],
)
def test_scripts_keep_their_code(code: str) -> None:
    checked_format(f"namespace a {{ event facet F(x: Int) script python {{{code}}} }}")
    checked_format(
        f"namespace a {{ facet F() script {{{code}}} andThen script {{{code}}} catch {{}} }}"
    )


@pytest.mark.parametrize(
    "comment",
    [
        "/***/",
        "/**  one  */",
        "/**\n one\n two */",
        "/** one\n      * two\n\n   - three\n*/",
        "/**\n *\n *   deeper\n **/",
        "/** one\x0b two\n three */",
        "/* one\n   * two\n   */",
        "/* one\n\t two\n   three*/",
        "/*\n\n*/",
        "// one  ",
    ],
)
def test_comments_of_all_shapes(comment: str) -> None:
    for before in ("", " ", "\n", "\n      "):
        text = f"namespace a {{ facet G(){before}{comment}\nfacet F() }}"
        assert len(comment_texts(read(checked_format(text)))) == 1


def test_a_doc_comment_is_lined_up() -> None:
    text = "namespace a {\n/**\nOne.\n      * @param x two\n   */\nfacet F(x: Int)\n}"
    assert checked_format(text) == (
        "namespace a {\n  /**\n   * One.\n   * @param x two\n   */\n  facet F(x: Int)\n}\n"
    )


def test_nesting_up_to_the_parsers_limit() -> None:
    half = MAX_NESTING // 2 - 2
    expression = "[" * half + "(" * half + "1" + ")" * half + "]" * half
    checked_format(f"namespace a {{ facet F(x: Json = {expression}) }}")
    blocks = "yield W()"
    for level in range(half):
        blocks = f"s{level} = W() andThen {{ {blocks} }}"
    checked_format(in_block(blocks))


def test_long_chains_break_before_every_operator() -> None:
    count = 3_000
    formatted = checked_format(in_block("a = W(x = " + " + ".join(["1"] * count) + ")"))
    assert formatted.count("\n        + 1") == count - 1


def test_tree_equality_sees_differences() -> None:
    one = read("namespace a { facet F(x: Int = 1 + 2) }")
    moved = read("namespace a {\n\n facet  F(x: Int = 1+2,) }")
    other = read("namespace a { facet F(x: Int = 1 + 3) }")
    assert same_tree(one, moved)
    assert not same_tree(one, other)
    assert tree_difference(one, other) == (
        "items[0].declarations[0].params[0].default.rest[0].operand.value: 2 and 3"
    )
    assert not same_tree(one, read("namespace a { facet F(x: Int = 1.0 + 2) }"))
    assert not same_tree(one, read("namespace a { facet F(x: Int = 1 + 2) facet G() }"))
