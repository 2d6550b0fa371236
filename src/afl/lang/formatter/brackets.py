"""What stands between brackets: lists, bodies and single expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from afl.lang.formatter.tokens_out import TokenWriter

T = TypeVar("T")


def write_list(
    out: TokenWriter,
    brackets: tuple[str, str],
    items: Sequence[T],
    write_item: Callable[[TokenWriter, T], None],
    *,
    pad: str = "",
    broken: bool = False,
) -> None:
    """Elements with commas: on one line, or one on a line with a comma behind each."""
    opening, closing = brackets
    with out.group(broken=broken):
        out.token(opening)
        with out.indented():
            for position, item in enumerate(items):
                out.line(" " if position else pad, keep_blank=position > 0)
                write_item(out, item)
                if position < len(items) - 1:
                    out.token(",")
            if items:
                out.optional_comma()
            empty = _is_empty(out, items)
            _last_comments(out, after_items=bool(items))
        if not empty:
            out.line(pad)
        out.token(closing)


def write_body(
    out: TokenWriter,
    items: Sequence[T],
    write_item: Callable[[TokenWriter, T], None],
    *,
    blank_between: Callable[[T, T], bool] | None = None,
) -> None:
    """Elements in braces, one on a line. Blank lines between them are kept, one at most."""
    with out.group(broken=bool(items)):
        out.token("{")
        with out.indented():
            write_guards(out)
            for position, item in enumerate(items):
                blank = (
                    position > 0
                    and blank_between is not None
                    and blank_between(items[position - 1], item)
                )
                out.line(hard=True, blank=blank, keep_blank=position > 0)
                write_item(out, item)
                write_guards(out)
            empty = _is_empty(out, items)
            _last_comments(out, after_items=bool(items))
        if not empty:
            out.line(" ")
        out.token("}")


def write_guards(out: TokenWriter) -> None:
    """A `;` that keeps a doc comment from the declaration behind it; no other one is written."""
    while out.at(";"):
        out.token(";")


def write_enclosed(
    out: TokenWriter,
    brackets: tuple[str, str],
    write_inner: Callable[[], None],
    *,
    pad: str = "",
    yields: bool = False,
) -> None:
    """One thing in brackets."""
    opening, closing = brackets
    with out.group(yields=yields):
        out.token(opening)
        with out.indented():
            out.line(pad)
            write_inner()
            _last_comments(out, after_items=True)
        out.line(pad)
        out.token(closing)


def _is_empty(out: TokenWriter, items: Sequence[object]) -> bool:
    return not items and not out.comment_waits and not out.comments_before


def _last_comments(out: TokenWriter, *, after_items: bool) -> None:
    """Comments before a closing bracket are indented like what they follow."""
    if out.comments_before:
        out.line(hard=True, keep_blank=after_items)
        out.own_line_comments()
