"""The pages of the diagnostic codes, and what the compiler says of their examples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePath

from afl.lang.diagnostics.model import Diagnostic
from afl.lang.diagnostics.page import FILE_NAME, FILE_NAMES, Page, Program
from afl.lang.diagnostics.render_human import render_human
from afl.lang.source import Source
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


def _too_many_values() -> str:
    rows = "".join(
        f"  - &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 9)
    )
    return f"args:\n  - &a0 [lol]\n{rows}"


BUILT: dict[str, Callable[[], str]] = {
    "AFL0001": _broken_unicode,
    "AFL0011": _too_large,
    "AFL0106": _too_deep,
    "AFL0110": _too_many,
    "AFL5012": _too_many_values,
}
"""Wrong programs that a page cannot show, because they are huge or not text."""


def path_of(code: str) -> Path:
    return FOLDER / f"{code}.md"


def diagnose(program: Program) -> list[Diagnostic]:
    # the pages parse without a compiler
    from afl.app import front_ends  # noqa: PLC0415
    from afl.lang.parser import parse  # noqa: PLC0415

    files = [
        front_ends.read_pipeline(Source(name, text), front_ends.workflow_of(PurePath(name)))
        if front_ends.is_pipeline(name)
        else parse(Source(name, text))
        for name, text in program
    ]
    return list(front_ends.compile_together(files).diagnostics)


def findings(page: Page) -> list[list[Diagnostic]]:
    """The diagnostics of each wrong program of a page.

    A built program may need other mistakes to get to its own, so only its own count.
    """
    if page.code in BUILT:
        name = FILE_NAMES["yaml"] if page.code.startswith("AFL50") else FILE_NAME
        found = diagnose([(name, BUILT[page.code]())])
        return [[diagnostic for diagnostic in found if diagnostic.code == page.code]]
    return [diagnose(program) for program in page.wrong]


def message_of(page: Page) -> str:
    """What the section Message must hold: all programs one after the other."""
    return "\n\n".join(render_human(found) for found in findings(page))
