"""Reads a Markdown page: its code blocks, its links and its headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, takewhile
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.architecture.repository import ROOT, repository_files

_FILE_COMMENT = re.compile(r"<!--\s*file:\s*(\S+)\s*-->")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of code."""

    line: int
    language: str
    words: tuple[str, ...]
    """What follows the language in the info string."""
    text: str
    file: str
    """The name that a `<!-- file: NAME -->` comment just before the block gives it, or ""."""


@dataclass(frozen=True, slots=True)
class Link:
    line: int
    target: str
    text: str = ""
    """What the reader sees; empty for an image."""


def documentation_pages() -> list[Path]:
    """The pages whose code and links are tested: those at the top, and all of docs/."""
    pages = [path for path in repository_files() if path.suffix == ".md"]
    return [path for path in pages if path.parent == ROOT or path.is_relative_to(ROOT / "docs")]


def blocks(text: str) -> Iterator[Block]:
    file = ""
    for token in MarkdownIt("commonmark").parse(text):
        if token.type == "html_block":
            named = _FILE_COMMENT.fullmatch(token.content.strip())
            file = named.group(1) if named else ""
        elif token.type in ("fence", "code_block"):
            language, *words = token.info.split() or [""]
            yield Block(_line(token), language, tuple(words), token.content, file)
            file = ""
        else:
            file = ""


def links(text: str) -> Iterator[Link]:
    for token in MarkdownIt("commonmark").parse(text):
        children = token.children or []
        for position, child in enumerate(children):
            if child.type == "image":
                yield Link(_line(token), str(child.attrGet("src")))
            elif child.type == "link_open":
                inside = takewhile(lambda each: each.type != "link_close", children[position + 1 :])
                shown = "".join(each.content for each in inside)
                yield Link(_line(token), str(child.attrGet("href")), shown)


def anchors(text: str) -> set[str]:
    """The names that `#name` can point at: each heading in small letters, joined by hyphens."""
    found: set[str] = set()
    tokens = MarkdownIt("commonmark").parse(text)
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            kept = re.sub(r"[^\w\- ]", "", inline.content.lower()).replace(" ", "-")
            again = sum(1 for name in found if re.fullmatch(rf"{re.escape(kept)}(-\d+)?", name))
            found.add(f"{kept}-{again}" if again else kept)
    return found


def _line(token: Token) -> int:
    return token.map[0] + 1 if token.map else 0
