"""Pure packages call nothing that touches the machine without an import.

The import contracts cannot see a bare `open()` or `datetime.now()`, so this reads the calls.
"""

from __future__ import annotations

import ast

import pytest

from tests.architecture.repository import ROOT, parse, pure_packages, python_files, relative

FORBIDDEN_BUILTINS = {"__import__", "breakpoint", "eval", "exec", "input", "open", "print"}
FORBIDDEN_METHODS = {("date", "today"), ("datetime", "now"), ("datetime", "utcnow")}


def impure_calls(tree: ast.Module) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Name(id=name) if name in FORBIDDEN_BUILTINS:
                found.append(f"{node.lineno}: {name}()")
            case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=name) if (
                owner,
                name,
            ) in FORBIDDEN_METHODS:
                found.append(f"{node.lineno}: {owner}.{name}()")
    return found


@pytest.mark.parametrize("package", pure_packages())
def test_a_pure_package_does_no_io(package: str) -> None:
    folder = ROOT / "src" / package.replace(".", "/")
    modules = [
        path
        for path in python_files("src")
        if path.is_relative_to(folder) or path == folder.with_suffix(".py")
    ]
    assert modules, f"{package} has no modules"
    problems = [
        f"{relative(path)}:{call}" for path in modules for call in impure_calls(parse(path))
    ]
    assert problems == []


@pytest.mark.parametrize(
    ("code", "calls"),
    [
        ("open('x')", ["1: open()"]),
        ("print(1)\nexec('')", ["1: print()", "2: exec()"]),
        ("datetime.now()", ["1: datetime.now()"]),
        ("datetime.datetime.now()", ["1: datetime.now()"]),
        ("store.open()\nself.print(x)\nprinter = print", []),
    ],
)
def test_the_search_finds_what_it_should(code: str, calls: list[str]) -> None:
    assert impure_calls(ast.parse(code)) == calls
