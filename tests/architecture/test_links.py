"""Every relative link in the documentation leads to a file, and to a heading if it names one."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.architecture.markdown import anchors, documentation_pages, links
from tests.architecture.repository import ROOT, relative


def broken_links(page: Path, top: Path) -> list[str]:
    text = page.read_text(encoding="utf-8")
    problems = []
    for link in links(text):
        parts = urlsplit(link.target)
        if parts.scheme or parts.netloc:
            continue
        target = page.parent / unquote(parts.path) if parts.path else page
        if not target.exists() or not target.resolve().is_relative_to(top):
            problems.append(f"{link.line}: {link.target} does not exist")
        elif parts.fragment and parts.fragment not in anchors(target.read_text(encoding="utf-8")):
            problems.append(f"{link.line}: {link.target} names no heading")
    return problems


@pytest.mark.parametrize("page", documentation_pages(), ids=relative)
def test_relative_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page, ROOT) == []


def test_a_broken_link_is_reported(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# Other page\n\n## Two `words`, again\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(
        "# Top\n\n[a](other.md) [b](other.md#two-words-again) [c](#top) [d](https://example.org)\n\n"
        "[e](missing.md)\n\n![f](missing.png) [g](other.md#three) [h](#bottom) [i](../)\n",
        encoding="utf-8",
    )
    assert broken_links(page, tmp_path) == [
        "5: missing.md does not exist",
        "7: missing.png does not exist",
        "7: other.md#three names no heading",
        "7: #bottom names no heading",
        "7: ../ does not exist",
    ]
