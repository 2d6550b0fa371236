"""Every promise on the page of promises names the tests that would break, and they exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.markdown import links
from tests.architecture.repository import ROOT, parse

PAGE = ROOT / "docs" / "explanation" / "promises.md"
_ROW = re.compile(r"^\| (?P<thing>[^|]+) \| (?P<promise>[^|]+) \| (?P<today>[^|]+) \|$", re.M)
_SECTION = re.compile(r"^## (?P<title>.+)$", re.M)


def named_tests(tree: ast.Module) -> set[str]:
    """The names of a file's tests: as they are, and with their class."""
    return {name for node in tree.body for name in _names(node)}


def _names(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith(
            "test_"
        ):
            yield name
        case ast.ClassDef(name=owner, body=body):
            for name in (name for inner in body for name in _names(inner)):
                yield from (name, f"{owner}.{name}")


def missing_tests(page: str, folder: Path) -> list[str]:
    """The links to Python files whose text is not the name of a test there."""
    problems = []
    for link in links(page):
        path = (folder / link.target).resolve()
        if path.suffix == ".py" and not (path.is_file() and link.text in named_tests(parse(path))):
            problems.append(f"{link.line}: there is no {link.text} in {link.target}")
    return problems


def unbacked_promises(page: str) -> list[str]:
    """The rows that say they hold today, and have no section with a test in it."""
    parts = _SECTION.split(page)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    backed = {
        f"#{title.lower().replace(' ', '-')}"
        for title, body in sections.items()
        if any(link.target.endswith(".py") for link in links(body))
    }
    return [
        row["thing"]
        for row in _ROW.finditer(parts[0])
        if row["today"] not in ("today", "---", "not yet")
        and not {link.target for link in links(row["thing"])} & backed
    ]


def test_every_named_test_exists() -> None:
    assert missing_tests(PAGE.read_text(encoding="utf-8"), PAGE.parent) == []


def test_every_promise_that_holds_names_a_test() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert unbacked_promises(page) == []
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert [row.group() for row in _ROW.finditer(page)] == rows, "a row is not of three cells"


def test_a_name_that_is_no_test_is_reported() -> None:
    here = Path(__file__).name
    page = (
        f"[`test_every_named_test_exists`]({here})\n[`test_gone`]({here})\n"
        f"[`named_tests`]({here})\n[`test_x`](test_gone.py)\n[words](other.md)\n"
    )
    assert missing_tests(page, Path(__file__).parent) == [
        f"1: there is no test_gone in {here}",
        f"1: there is no named_tests in {here}",
        "1: there is no test_x in test_gone.py",
    ]


def test_a_promise_without_a_test_is_reported() -> None:
    page = (
        "| thing | promise | today |\n|---|---|---|\n| [one](#one-thing) | p | yes |\n"
        "| [two](#two) | p | yes |\n| three | p | for tasks |\n| four | p | not yet |\n\n"
        "## One thing\n\n[`test_x`](test_x.py)\n\n## Two\n\nwords\n"
    )
    assert unbacked_promises(page) == ["[two](#two)", "three"]


def test_tests_are_named_with_and_without_their_class() -> None:
    code = "def test_a(): ...\nclass B:\n    def test_c(self): ...\n    def other(self): ...\n"
    code += "async def test_d(): ...\n"
    assert named_tests(ast.parse(code)) == {"test_a", "test_c", "B.test_c", "test_d"}
