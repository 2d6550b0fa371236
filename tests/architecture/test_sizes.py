"""Files and functions stay small enough to read in one sitting.

100 to 350 lines is a good file and up to 50 lines a good function; the limits here are where a
reason must be given. A reason that is no longer needed fails too, so the lists stay true.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.repository import SOURCE, parse, python_files, relative

FILE_LIMITS = {"src": 600, "tests": 800, "bench": 800}
FUNCTION_LIMIT = 80
PACKAGE_DOCSTRING_LIMIT = 30

LONG_FILES: dict[str, str] = {}
"""Path -> why the file is longer than its limit."""

LONG_FUNCTIONS: dict[str, str] = {}
"""`path::Class.function` -> why the function is longer than the limit."""


def functions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every function with its dotted name and its length in lines, decorators left out."""

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + child.name, (child.end_lineno or child.lineno) - child.lineno + 1
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield from walk(child, f"{prefix}{child.name}.")
            else:
                yield from walk(child, prefix)

    yield from walk(tree, "")


def test_files_are_short_or_have_a_reason() -> None:
    long = {
        relative(path)
        for folder, limit in FILE_LIMITS.items()
        for path in python_files(folder)
        if len(path.read_text(encoding="utf-8").splitlines()) > limit
    }
    assert long == set(LONG_FILES), "split the file, give a reason, or drop a reason not needed"
    assert all(LONG_FILES.values())


def test_functions_are_short_or_have_a_reason() -> None:
    long = {
        f"{relative(path)}::{name}"
        for path in python_files(*FILE_LIMITS)
        for name, length in functions(parse(path))
        if length > FUNCTION_LIMIT
    }
    assert long == set(LONG_FUNCTIONS), "split the function, give a reason, or drop a stale one"
    assert all(LONG_FUNCTIONS.values())


def test_every_package_opens_with_a_short_docstring() -> None:
    packages = [path for path in python_files("src") if path.name == "__init__.py"]
    assert packages
    for path in packages:
        docstring = ast.get_docstring(parse(path))
        assert docstring, f"{relative(path)} has no docstring"
        assert len(docstring.splitlines()) <= PACKAGE_DOCSTRING_LIMIT, relative(path)


def test_every_source_folder_with_modules_is_a_package() -> None:
    folders = {path.parent for path in python_files("src") if path.is_relative_to(SOURCE)}
    missing = [relative(folder) for folder in folders if not (folder / "__init__.py").is_file()]
    assert missing == []


def test_nested_functions_and_methods_are_measured() -> None:
    code = "class A:\n    def b(self):\n        def c():\n            pass\n        return c\n"
    assert list(functions(ast.parse(code))) == [("A.b", 4), ("A.b.c", 2)]
