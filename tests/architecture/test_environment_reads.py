"""Only the settings module reads environment variables."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.repository import parse, python_files, relative

ALLOWED = "src/afl/base/settings.py"
READERS = {"environ", "environb", "getenv", "getenvb"}


def environment_reads(tree: ast.Module) -> list[int]:
    """The lines that reach for the environment, under whatever name `os` was imported."""
    names_of_os = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "os"
    }
    lines = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                found = owner in names_of_os and name in READERS
            case ast.ImportFrom(module="os", names=names):
                found = any(alias.name in READERS for alias in names)
            case _:
                continue
        if found:
            lines.append(node.lineno)
    return lines


def test_only_the_settings_read_the_environment() -> None:
    readers = {
        relative(path): lines
        for path in python_files("src")
        if (lines := environment_reads(parse(path)))
    }
    assert list(readers) == [ALLOWED], readers


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("import os\nos.environ['X']", [2]),
        ("import os as system\nsystem.getenv('X')", [2]),
        ("from os import environ", [1]),
        ("import os\nos.path.join('a')\nsettings.environ", []),
    ],
)
def test_the_search_finds_what_it_should(code: str, lines: list[int]) -> None:
    assert environment_reads(ast.parse(code)) == lines
