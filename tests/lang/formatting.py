"""What every formatting must keep, whatever comes in."""

from __future__ import annotations

from afl.lang.formatter import format_file
from afl.lang.parser import parse
from afl.lang.parser.docs import clean_doc
from afl.lang.source import Source
from afl.lang.tree import File
from tests.lang.tree_equality import tree_difference


def read(text: str) -> File:
    """The tree of a text that must have no mistake."""
    file = parse(Source("test.afl", text))
    assert [found.message for found in file.diagnostics if found.is_error] == [], text
    return file


def comment_texts(file: File) -> list[str]:
    """What the comments say, without the blanks around their lines."""
    text = file.source.text
    return [
        clean_doc(text[found.start + 3 : found.end - 2])
        if found.is_doc(text)
        else "\n".join(line.strip() for line in text[found.start : found.end].split("\n"))
        for found in file.tokens.comments
    ]


def checked_format(text: str) -> str:
    """The formatted text, after a look at all that formatting promises."""
    before = read(text)
    formatted = format_file(before)
    after = read(formatted)
    difference = tree_difference(before, after)
    assert difference is None, f"{difference}\n{text}\n-->\n{formatted}"
    assert comment_texts(after) == comment_texts(before), f"{text}\n-->\n{formatted}"
    again = format_file(after)
    assert again == formatted, f"{text}\n-->\n{formatted}\n-->\n{again}"
    return formatted
