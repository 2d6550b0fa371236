from __future__ import annotations

import re
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afl.lang.diagnostics.display import cells
from afl.lang.diagnostics.model import Diagnostic, Edit, Label, Suggestion
from afl.lang.diagnostics.render_concise import render_concise
from afl.lang.diagnostics.render_human import Palette, render_human, summary
from afl.lang.source import Source
from tests.lang.diagnostic_samples import (
    after,
    at,
    diagnostics,
    error,
    misspelt_argument,
    warning,
)

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def _shows(diagnostic: Diagnostic, expected: str, width: int = 100) -> None:
    """The text under the header, which is the same for all diagnostics of these tests."""
    header, _, rest = render_human([diagnostic], width=width).partition("\n")
    assert header == "error[AFL2001]: something is wrong"
    assert rest == dedent(expected).strip("\n")


def test_the_whole_of_a_diagnostic() -> None:
    expected = """\
        error[AFL2001]: facet `billing.Charge` has no parameter `ammount`
          --> flows/close.afl:14:22
           |
         3 |   event facet Charge(amount: Money, card: Card) => (receipt: Receipt)
           |                      ------ did you mean this one?
        ...
        14 |   c = billing.Charge(ammount = i.total, card = i.card)
           |                      ^^^^^^^ unknown parameter
           |
           = note: its parameters are `amount` and `card`
           = help: rename it to `amount`
           |
        14 |   c = billing.Charge(amount = i.total, card = i.card)
           |                      ~~~~~~"""
    assert render_human([misspelt_argument()]) == dedent(expected)


def test_a_label_without_a_text() -> None:
    source = Source("flow.afl", "a = B()")
    _shows(
        error(Label(at(source, "B"))),
        """
         --> flow.afl:1:5
          |
        1 | a = B()
          |     ^
        """,
    )


def test_several_labels_on_one_line_hang_on_threads() -> None:
    source = Source("flow.afl", "one two three four")
    _shows(
        error(
            Label(at(source, "two"), "second"),
            Label(at(source, "four"), "last"),
            Label(at(source, "one"), "first"),
            Label(at(source, "three")),
        ),
        """
         --> flow.afl:1:5
          |
        1 | one two three four
          | --- ^^^ ----- ---- last
          | |   |
          | |   second
          | first
        """,
    )


def test_two_labels_on_one_span() -> None:
    source = Source("flow.afl", "a = B()")
    _shows(
        error(Label(at(source, "B"), "this"), Label(at(source, "B"), "and that")),
        """
         --> flow.afl:1:5
          |
        1 | a = B()
          |     ^ this
          |     |
          |     and that
        """,
    )


def test_a_label_inside_another() -> None:
    source = Source("flow.afl", "a = Outer(inner = 1)")
    _shows(
        error(
            Label(at(source, "inner"), "unknown"),
            Label(at(source, "Outer(inner = 1)"), "this call"),
        ),
        """
         --> flow.afl:1:11
          |
        1 | a = Outer(inner = 1)
          |     ------^^^^^-----
          |     |     |
          |     |     unknown
          |     this call
        """,
    )


def test_lines_that_are_near_each_other() -> None:
    source = Source("flow.afl", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n")
    _shows(
        error(
            Label(at(source, "two"), "here"),
            Label(at(source, "one"), "next to it"),
            Label(at(source, "four"), "one line between"),
            Label(at(source, "seven"), "two lines between"),
        ),
        """
         --> flow.afl:2:1
          |
        1 | one
          | --- next to it
        2 | two
          | ^^^ here
        3 | three
        4 | four
          | ---- one line between
        ...
        7 | seven
          | ----- two lines between
        """,
    )


def test_labels_in_other_files() -> None:
    source = Source("flow.afl", "\n" * 9 + "  pay = Pay()")
    other = Source("pay.afl", "facet Pay(sum: Int)")
    _shows(
        error(
            Label(at(source, "Pay"), "`sum` is missing"),
            Label(at(other, "sum"), "declared here"),
            Label(at(other, "Pay"), "this facet"),
        ),
        """
          --> flow.afl:10:9
           |
        10 |   pay = Pay()
           |         ^^^ `sum` is missing
           |
          ::: pay.afl:1:11
           |
         1 | facet Pay(sum: Int)
           |       --- --- declared here
           |       |
           |       this facet
        """,
    )


def test_a_span_over_several_lines_shows_the_first_and_the_last() -> None:
    source = Source("flow.afl", "a = B(\n  x = 1,\n  y = 2,\n  z = 3,\n  ) after c\n")
    _shows(
        error(Label(source.span(4, source.text.index(" after")), "this call")),
        """
         --> flow.afl:1:5
          |
        1 | a = B(
          |     ^^ this call
        ...
        5 |   ) after c
          |   ^ to here
        """,
    )


def test_a_span_that_ends_with_a_line_break_stays_on_its_line() -> None:
    source = Source("flow.afl", "a = B\nc = D\n")
    _shows(
        error(Label(source.span(4, 6), "here")),
        """
         --> flow.afl:1:5
          |
        1 | a = B
          |     ^ here
        """,
    )


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        ("a = ", 4, " --> flow.afl:1:5\n  |\n1 | a =\n  |     ^ here"),
        ("a =\r\nb", 3, " --> flow.afl:1:4\n  |\n1 | a =\n  |    ^ here"),
        ("a\n", 2, " --> flow.afl:2:1\n  |\n2 |\n  | ^ here"),
        ("", 0, " --> flow.afl:1:1\n  |\n1 |\n  | ^ here"),
        ("a", 99, " --> flow.afl:1:2\n  |\n1 | a\n  |  ^ here"),
    ],
    ids=["end of the text", "end of a line", "after the last line", "empty", "beyond"],
)
def test_empty_spans_show_one_caret(text: str, start: int, expected: str) -> None:
    source = Source("flow.afl", text)
    rest = render_human([error(Label(source.span(start, start), "here"))]).partition("\n")[2]
    assert rest == expected


def test_tabs_wide_and_combining_characters_stay_aligned() -> None:
    source = Source("flow.afl", 'x\t= "日本" ++ "cafe\u0301" ++ y')
    _shows(
        error(Label(at(source, "y"), "one"), Label(at(source, "日本"), "wide")),
        """
         --> flow.afl:1:24
          |
        1 | x   = "日本" ++ "cafe\u0301" ++ y
          |        ----               ^ one
          |        |
          |        wide
        """,
    )


def test_what_could_steer_a_terminal_is_escaped() -> None:
    source = Source("\x1b]0;.afl", "a\x1b[2J\ud800\u202e\u2028b")
    diagnostic = Diagnostic(
        "AFL0002",
        error(Label(source.span(0, 0))).severity,
        "odd \x07 \udfff\nmessage",
        Label(at(source, "b"), "\x1b"),
        notes=("\x00",),
    )
    expected = r"""
        error[AFL0002]: odd \u{7} \u{dfff}\u{a}message
         --> \u{1b}]0;.afl:1:9
          |
        1 | a\u{1b}[2J\u{d800}\u{202e}\u{2028}b
          |                                   ^ \u{1b}
          |
          = note: \u{0}
        """
    assert render_human([diagnostic]) == dedent(expected).strip("\n")
    assert render_concise([diagnostic]) == (
        r"\u{1b}]0;.afl:1:9: error[AFL0002] odd \u{7} \u{dfff}\u{a}message"
    )


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (
            "w03",
            """
        1 | w00 w01 w02 w03 w04 w05 w06 w07 w...
          |             ^^^ here
            """,
        ),
        (
            "w25",
            """
        1 | ...2 w23 w24 w25 w26 w27 w28 w29 ...
          |              ^^^ here
            """,
        ),
        (
            "w49",
            """
        1 | ...w43 w44 w45 w46 w47 w48 w49
          |                            ^^^ here
            """,
        ),
    ],
)
def test_a_long_line_is_cut_around_the_span(part: str, expected: str) -> None:
    source = Source("flow.afl", " ".join(f"w{number:02}" for number in range(50)))
    shown = render_human([error(Label(at(source, part), "here"))], width=40).split("\n")[3:]
    assert shown == dedent(expected).strip("\n").split("\n")
    assert max(len(line) for line in shown) <= 40


def test_a_long_line_is_cut_around_the_primary_span_when_not_all_fit() -> None:
    source = Source("flow.afl", " ".join(f"w{number:02}" for number in range(50)))
    _shows(
        error(Label(at(source, "w25"), "here"), Label(at(source, "w49"), "far away")),
        """
         --> flow.afl:1:101
          |
        1 | ...2 w23 w24 w25 w26 w27 w28 w29 ...
          |              ^^^                   - far away
          |              |
          |              here
        """,
        width=40,
    )


def test_a_half_hidden_wide_character_leaves_a_blank() -> None:
    source = Source("flow.afl", "日" * 50 + "x" + "日" * 50)
    line, marks = render_human([error(Label(at(source, "x")))], width=40).split("\n")[3:]
    assert line == "1 | ...日日日日日日日x日日日日日日日 ..."
    pieces, columns = cells(line)
    assert columns[pieces.index("x")] == marks.index("^")


def test_a_line_of_a_million_characters_is_shown_quickly() -> None:
    source = Source("flow.afl", "a" * 500_000 + "!" + "a" * 500_000)
    line = render_human([error(Label(at(source, "!")))], width=60).split("\n")[3]
    assert len(line) == 60
    assert "aaa!aaa" in line


def _suggests(suggestion: Suggestion, label: Label, expected: str) -> None:
    rendered = render_human([error(label, suggestions=(suggestion,))])
    assert rendered.partition(" = help: ")[2].split("\n") == dedent(expected).strip("\n").split(
        "\n"
    )


def test_a_suggestion_that_inserts() -> None:
    source = Source("flow.afl", "a = B(x = 1 y = 2)")
    _suggests(
        Suggestion("add a comma", (Edit(after(at(source, "1")), ","),)),
        Label(at(source, "y")),
        """
        add a comma
          |
        1 | a = B(x = 1, y = 2)
          |            +
        """,
    )


def test_a_suggestion_that_deletes_shows_the_line_only() -> None:
    source = Source("flow.afl", "a = = B()")
    _suggests(
        Suggestion("remove it", (Edit(at(source, "= "), ""),)),
        Label(at(source, "=")),
        """
        remove it
          |
        1 | a = B()
        """,
    )


def test_a_suggestion_with_several_edits_of_one_line() -> None:
    source = Source("flow.afl", "a = Bee(x = 'one', y = 'two')")
    _suggests(
        Suggestion(
            "use double quotes",
            (Edit(at(source, "'two'"), '"two"'), Edit(at(source, "'one'"), '"one"')),
        ),
        Label(at(source, "Bee")),
        """
        use double quotes
          |
        1 | a = Bee(x = "one", y = "two")
          |             ~~~~~      ~~~~~
        """,
    )


def test_a_suggestion_in_another_file_says_where() -> None:
    source = Source("flow.afl", "a = B()")
    other = Source("b.afl", "facet C()")
    _suggests(
        Suggestion("rename it", (Edit(at(other, "C"), "B"),)),
        Label(at(source, "B")),
        """
        rename it
         ::: b.afl:1:7
          |
        1 | facet B()
          |       ~
        """,
    )


def test_suggestions_that_do_not_fit_one_line_stay_in_words() -> None:
    source = Source("flow.afl", "a = B()\nc = D()\n")
    first, second = at(source, "B"), at(source, "D")
    for edits in (
        (Edit(first, "E"), Edit(second, "F")),
        (Edit(first, "E\nF"),),
        (Edit(source.span(first.start, second.end), "F"),),
        (Edit(source.span(0, 3), "F"), Edit(source.span(2, 5), "G")),
        (Edit(source.span(0, 7), ""),),
    ):
        _suggests(Suggestion("change it", edits), Label(first), "change it")


def test_a_note_may_have_several_lines() -> None:
    source = Source("flow.afl", "a")
    _shows(
        error(Label(at(source, "a")), notes=("first\nsecond",)),
        """
         --> flow.afl:1:1
          |
        1 | a
          | ^
          |
          = note: first
                  second
        """,
    )


def test_diagnostics_are_separated_by_an_empty_line() -> None:
    label = Label(Source("flow.afl", "a").span(0, 1))
    rendered = render_human([error(label), warning(label)])
    assert rendered.split("\n\n") == [render_human([error(label)]), render_human([warning(label)])]
    assert rendered.split("\n\n")[1].startswith("warning[AFL3009]: something is odd\n")
    assert render_human([]) == ""


def test_colour_changes_nothing_but_the_colour() -> None:
    diagnostic = misspelt_argument()
    coloured = render_human([diagnostic], colour=True)
    assert "\x1b[1;31merror[AFL2001]\x1b[0m" in coloured
    assert "\x1b[1;31m^^^^^^^\x1b[0m" in coloured
    assert _ANSI.sub("", coloured) == render_human([diagnostic])


def test_the_palette_is_the_callers_choice() -> None:
    palette = Palette("35", "", "", "", "", "", "", "")
    coloured = render_human([misspelt_argument()], colour=True, palette=palette)
    assert set(_ANSI.findall(coloured)) == {"\x1b[35m", "\x1b[0m"}
    assert "\x1b" not in render_human([misspelt_argument()], palette=palette)


@pytest.mark.parametrize(
    ("errors", "warnings", "files", "expected"),
    [
        (2, 1, 3, "2 errors and 1 warning in 3 files"),
        (1, 0, 1, "1 error in 1 file"),
        (0, 2, 2, "2 warnings in 2 files"),
        (0, 0, 3, "no problems in 3 files"),
        (0, 0, 0, "no problems in 0 files"),
    ],
)
def test_summary(errors: int, warnings: int, files: int, expected: str) -> None:
    label = Label(Source("flow.afl", "a").span(0, 1))
    assert summary([error(label)] * errors + [warning(label)] * warnings, files) == expected


def test_concise() -> None:
    assert render_concise([misspelt_argument(), misspelt_argument()]) == "\n".join(
        ["flows/close.afl:14:22: error[AFL2001] facet `billing.Charge` has no parameter `ammount`"]
        * 2
    )


@given(diagnostics(), st.integers(-1, 200), st.booleans())
def test_anything_can_be_rendered(diagnostic: Diagnostic, width: int, colour: bool) -> None:
    rendered = render_human([diagnostic], width=width, colour=colour)
    rendered.encode("utf-8")
    lines = _ANSI.sub("", rendered).split("\n")
    assert all(line.isprintable() for line in lines)
    assert colour or all(line == line.rstrip() for line in lines[1:])
    assert any("^" in line for line in lines)
    concise = render_concise([diagnostic])
    assert concise.isprintable()
