"""Values of steps, cut where they are large: a page has to come whatever a step was given."""

from __future__ import annotations

import json
from collections.abc import Mapping

from afl.kernel.model import Json
from afl.server.models.base import JsonMap
from afl.server.models.runs import Payload

#: The longest value that is told whole, as JSON, in bytes.
LONGEST = 32 * 1024


def payload(value: Mapping[str, Json], longest: int | None = LONGEST) -> Payload:
    """A value, or the beginning of its text; whole without a limit."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    size = len(text.encode())
    if longest is None or size <= longest:
        return Payload(value=dict(value), bytes=size, truncated=False)
    head = text.encode()[:longest].decode(errors="ignore")
    return Payload(value=head, bytes=size, truncated=True)


def short(value: Mapping[str, Json]) -> JsonMap:
    """A map, with the beginning of the text in place of every value that is large."""
    return {name: _short(each) for name, each in value.items()}


def _short(value: Json) -> Json:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return value if len(text) <= LONGEST else f"{text[:LONGEST]}…"
