"""Formatting changes nothing but the layout, whatever the program and its layout before."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings

from afl.lang.formatter import format_file
from afl.lang.parser import parse
from afl.lang.source import Source
from afl.lang.tree import File
from tests.lang.generate import SourceText, programs, random_program
from tests.lang.tree_equality import tree_difference

PROGRAMS = 2_000
PARTS = 8


def comments(file: File) -> list[str]:
    """What the comments say: their lines without the blanks around them."""
    text = file.source.text
    return [
        "\n".join(line.strip() for line in text[found.start : found.end].splitlines())
        for found in file.tokens.comments
    ]


def check(name: str, text: str) -> None:
    before = parse(Source(name, text))
    assert not any(found.is_error for found in before.diagnostics)
    once = format_file(before)
    after = parse(Source(name, once))
    assert not any(found.is_error for found in after.diagnostics), once
    assert tree_difference(before, after) is None, once
    assert comments(after) == comments(before), once
    assert format_file(after) == once


@pytest.mark.parametrize("part", range(PARTS))
def test_format_keeps_tree_and_comments_and_is_idempotent(part: int) -> None:
    rng = Random(f"format {part}")
    for _ in range(PROGRAMS // PARTS):
        for name, text in random_program(rng, rng.choice((1, 1, 2, 2, 3, 4, 8))):
            check(name, text)


@settings(max_examples=100, deadline=None)
@given(programs(max_size=4))
def test_format_of_any_program(program: list[SourceText]) -> None:
    for name, text in program:
        check(name, text)
