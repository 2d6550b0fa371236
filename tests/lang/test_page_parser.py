from __future__ import annotations

from textwrap import dedent

import pytest

from afl.lang.diagnostics.page import Page, parse_page

_PAGE = dedent(
    """\
    # AFL0102: missing comma

    Elements are separated by commas.
    Always.

    ## Wrong

    ```afl
    ## not a heading
    ```

    ## Message

    ```text
    error

      two
    ```

    ## Right

    Some words.

    ```afl
    a
    ```

    ## Why

    One.

    Two.
    """
)


def test_the_parts_of_a_page() -> None:
    assert parse_page(_PAGE) == Page(
        "AFL0102",
        "missing comma",
        "Elements are separated by commas.\nAlways.",
        [[("flow.afl", "## not a heading\n")]],
        "error\n\n  two",
        [[("flow.afl", "a\n")]],
        "One.\n\nTwo.",
    )


def _wrong(*blocks: str) -> list[list[tuple[str, str]]]:
    section = "\n".join(f"```afl\n{block}```\n" for block in blocks)
    return parse_page(_PAGE.replace("```afl\n## not a heading\n```\n", section)).wrong


def test_unnamed_blocks_are_programs_of_their_own() -> None:
    assert _wrong("a\n", "b\n") == [[("flow.afl", "a\n")], [("flow.afl", "b\n")]]


def test_named_blocks_form_one_program_until_a_name_comes_again() -> None:
    a, b = "// file: a.afl\n1\n", "// file: lib/b.afl\n2\n"
    files = [("a.afl", a), ("lib/b.afl", b)]
    assert _wrong(a, b) == [files]
    assert _wrong(a, b, a, b) == [files, files]
    assert _wrong(a, "c\n", b) == [[files[0]], [("flow.afl", "c\n")], [files[1]]]


def test_a_wrong_example_may_be_described_instead() -> None:
    page = parse_page(_PAGE.replace("```afl\n##", "```text no-test\n##"))
    assert page.wrong == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("# AFL0102: ", "# AFL102: ", "starts with"),
        ("## Wrong", "## Bad", "the sections of a page are"),
        ("## Why\n\nOne.\n\nTwo.\n", "", "the sections of a page are"),
        ("## Right", "## Wrong", "comes twice"),
        ("```text", "```", "one block of `text`"),
        ("```text", "```text\n```\n```text", "one block of `text`"),
        ("```afl\na\n```", "```python\na\n```", "not of `python`"),
        ("```afl\na\n```\n", "", "needs a summary, a right example"),
        ("One.\n\nTwo.\n", "", "needs a summary"),
        ("Elements are separated by commas.\nAlways.\n", "", "needs a summary"),
        ("```afl\na\n```", "```afl\na\n", "a block has no end"),
    ],
)
def test_a_page_of_another_form_is_refused(old: str, new: str, problem: str) -> None:
    assert old in _PAGE
    with pytest.raises(ValueError, match=problem):
        parse_page(_PAGE.replace(old, new))
