"""Tables of fragments: what each shows in words, the fragment, and the codes that it earns."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from afl.lang.api import compile_sources

Row = tuple[str, str, list[str]]


def codes_of(fragment: str, world: str = "\n") -> list[str]:
    """The codes of a fragment that stands in a namespace, behind what it may call."""
    text = f"namespace shop {{{world}{fragment}\n}}\n"
    return [diagnostic.code for diagnostic in compile_sources([("flow.afl", text)]).diagnostics]


def each_of(tables: Mapping[str, list[Row]]) -> pytest.MarkDecorator:
    """Has a test done for each row, named by its table and words."""
    cases = [
        pytest.param(fragment, expected, id=f"{table}: {words}")
        for table, rows in tables.items()
        for words, fragment, expected in rows
    ]
    return pytest.mark.parametrize(("fragment", "expected"), cases)
