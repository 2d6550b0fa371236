"""Texts of others, as a terminal may be shown them."""

from __future__ import annotations


def plain(text: str) -> str:
    """The text without what steers a terminal: models and tools may say anything."""
    return "".join(
        char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )


def shortened(text: str, longest: int) -> str:
    """The first line of a text, cut if it is long."""
    line = plain(text).strip().partition("\n")[0]
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
