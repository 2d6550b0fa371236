from __future__ import annotations

import re
from importlib.resources import files

import pytest

from afl.kernel.postgres.statements import SQL, parse

SOURCES = [path for path in files("afl.kernel.postgres").iterdir() if path.name.endswith(".py")]


def test_a_file_is_cut_at_the_names() -> None:
    text = "-- name: one\n-- What it does.\nselect 1\n\n-- name: two\n-- Other.\nselect 2\n"
    assert list(parse(text)) == [
        ("one", "-- What it does.\nselect 1"),
        ("two", "-- Other.\nselect 2"),
    ]


def test_a_statement_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="before the first name"):
        list(parse("select 1\n-- name: one\nselect 1"))


@pytest.mark.parametrize("name", SQL)
def test_every_statement_says_what_it_is_for(name: str) -> None:
    assert re.match(rb"-- [A-Z][^\n]+[.;:,\w]\n", SQL[name])
    assert b"{" not in SQL[name]


def test_every_statement_is_used_and_no_other() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in SOURCES)
    unused = [name for name in SQL if f'"{name}"' not in code]
    unknown = [name for name in re.findall(r'SQL\["(\w+)"\]', code) if name not in SQL]
    assert (unused, unknown) == ([], [])
