"""The conditions of a search for runs, as filters of documents."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from afl.kernel.mongo.transaction import Document
from afl.kernel.mongo.values import to_micros
from afl.runtime.run_search import RunFilter

#: Comes after every letter.
_LAST_LETTER = "\U0010ffff"


def wanted_runs(filter: RunFilter, ids: Document, labels: list[str]) -> Document:
    """Everything but texts: what indexes can serve. `ids` bounds the ids; `labels` are the labels,
    that which few runs have first."""
    wanted: Document = {}
    if ids:
        wanted["_id"] = ids
    if filter.state is not None:
        wanted["word"] = filter.state
    if filter.workflow is not None:
        wanted["workflow"] = filter.workflow
    if filter.tenant is not None:
        wanted["tenant"] = filter.tenant
    if labels:
        wanted["labels"] = {"$all": labels}
    if filter.since is not None or filter.until is not None:
        wanted["created_at"] = _between(filter.since, filter.until)
    if filter.parent is not None:
        wanted["parent"] = filter.parent
        if filter.top_only:
            wanted["$nor"] = [{}]  # nobody has a parent and none
    elif filter.top_only:
        wanted["parent"] = None
    return wanted


def _between(since: datetime | None, until: datetime | None) -> dict[str, Any]:
    bounds: dict[str, Any] = {}
    if since is not None:
        bounds["$gte"] = to_micros(since)
    if until is not None:
        bounds["$lt"] = to_micros(until)
    return bounds


def both(wanted: Document, more: Document) -> Document:
    """What fits both filters."""
    return {"$and": [wanted, more]} if wanted and more else wanted or more


def begins_with(text: str) -> Document:
    """The ids that begin with a text."""
    return {"_id": {"$gte": text, "$lt": f"{text}{_LAST_LETTER}"}}


def has_text(text: str) -> Document:
    """A field that has a text in it; the field is in small letters already."""
    return {"$regex": re.escape(text)}


def can_be_kept(text: str) -> bool:
    """Whether a text can be in a document at all, or in a pattern."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
