"""The pages of the diagnostic codes, and what the compiler says of their examples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from afl.lang.diagnostics.model import Diagnostic
from afl.lang.diagnostics.page import FILE_NAME, Page, Program
from afl.lang.diagnostics.render_human import render_human
from tests.architecture.repository import SOURCE

FOLDER = SOURCE / "lang" / "diagnostics" / "pages"


def _broken_unicode() -> str:
    return "// caf\udce9\nnamespace shop {\n}\n"


def _too_large() -> str:
    lines = 5_000
    row = "  " + "; " * 50 + "\n"
    return "namespace shop {\n" + row * lines + "}\n"


def _too_deep() -> str:
    deep = "(" * 101 + "1" + ")" * 101
    return f"namespace shop {{\n  facet Box(size: Int = {deep})\n}}\n"


def _too_many() -> str:
    return "namespace shop {\n" + "  facet Box(size)\n" * 60 + "}\n"


BUILT: dict[str, Callable[[], str]] = {
    "AFL0001": _broken_unicode,
    "AFL0011": _too_large,
    "AFL0106": _too_deep,
    "AFL0110": _too_many,
}
"""Wrong programs that a page cannot show, because they are huge or not text."""


def path_of(code: str) -> Path:
    return FOLDER / f"{code}.md"


def diagnose(program: Program) -> list[Diagnostic]:
    from afl.lang.api import compile_sources  # noqa: PLC0415 - the pages parse without a compiler

    return list(compile_sources(program).diagnostics)


def findings(page: Page) -> list[list[Diagnostic]]:
    """The diagnostics of each wrong program of a page.

    A built program may need other mistakes to get to its own, so only its own count.
    """
    if page.code in BUILT:
        found = diagnose([(FILE_NAME, BUILT[page.code]())])
        return [[diagnostic for diagnostic in found if diagnostic.code == page.code]]
    return [diagnose(program) for program in page.wrong]


def message_of(page: Page) -> str:
    """What the section Message must hold: all programs one after the other."""
    return "\n\n".join(render_human(found) for found in findings(page))
