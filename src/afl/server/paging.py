"""Pages of lists: one more is read than is shown, which tells whether there is a next page."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from afl.server.errors import BadForm
from afl.server.models.base import Page

T = TypeVar("T")
V = TypeVar("V")
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def paged(
    found: Sequence[T], limit: int, view: Callable[[T], V], cursor: Callable[[T], str]
) -> Page[V]:
    """The page of what was found under `limit + 1`."""
    shown = found[:limit]
    following = cursor(shown[-1]) if shown and len(found) > limit else None
    return Page[V](items=[view(each) for each in shown], next=following)


def is_id(text: str) -> bool:
    """Whether this can be the id of a run or a task."""
    return _ID.fullmatch(text) is not None


def id_cursor(cursor: str | None) -> str | None:
    """The cursor of a list in the order of ids.

    Raises:
        BadForm: it can be none.
    """
    if cursor is not None and not is_id(cursor):
        raise BadForm(f"`{cursor}` is no cursor of this list. Use what `next` of a page says.")
    return cursor
