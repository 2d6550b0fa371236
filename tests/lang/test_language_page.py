"""The language reference names every word, type and diagnostic of the language, and no other."""

from __future__ import annotations

import re

from afl.lang.diagnostics.codes import CODES
from afl.lang.tokens import BUILTIN_TYPES, RESERVED
from tests.architecture.repository import ROOT

REFERENCE = ROOT / "docs" / "reference"
PAGE = (REFERENCE / "language.md").read_text(encoding="utf-8")
POLICIES = (REFERENCE / "policies.md").read_text(encoding="utf-8")
PIPELINES = (REFERENCE / "pipelines.md").read_text(encoding="utf-8")


def _codes(text: str) -> set[str]:
    """The codes of a text; `AFL0001 to AFL0003` stands for all between them, too."""
    found = set(re.findall(r"AFL\d{4}", text))
    for first, last in re.findall(r"(AFL\d{4}) to (AFL\d{4})", text):
        found |= {code for code in CODES if first <= code <= last}
    return found


def _sections() -> dict[str, str]:
    heads = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)[1:]
    return dict(zip(heads[::2], heads[1::2], strict=True))


def test_every_diagnostic_has_its_place_in_the_reference() -> None:
    assert _codes(PAGE) | _codes(POLICIES) | _codes(PIPELINES) == set(CODES)


def test_every_section_has_an_example_and_its_diagnostics() -> None:
    for name, text in _sections().items():
        if name != "Contents":
            assert "```afl" in text, f"{name} has no example"
            assert "*Diagnostics:* AFL" in text, f"{name} names no diagnostics"


def test_the_contents_list_every_section() -> None:
    listed = re.findall(r"^\[([^\]]+)\]\(#", _sections()["Contents"], re.MULTILINE)
    assert listed == [name for name in _sections() if name != "Contents"]


def test_the_reserved_words_are_those_of_the_lexer() -> None:
    text = _sections()["Lexical structure"]
    listed = text.partition("foreach variable:")[2].partition("\n\nParameters")[0]
    assert re.findall(r"`(\w+)`", listed) == sorted(RESERVED)


def test_the_built_in_types_are_those_of_the_lexer() -> None:
    table = _sections()["Types"].partition("\n\nA value fits")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(BUILTIN_TYPES)
