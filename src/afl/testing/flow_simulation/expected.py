"""What a run of a program comes to, as the reference says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from afl.kernel.model import Json


class Status(Enum):
    COMPLETE = "complete"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Row:
    """What became of a step."""

    status: Status
    params: Mapping[str, Json]
    returns: Mapping[str, Json]
    error: Mapping[str, Json] | None


@dataclass(frozen=True, slots=True)
class Expected:
    """What a run comes to. Everything goes by path."""

    status: Status
    outputs: Mapping[str, Json]
    error: Mapping[str, Json] | None
    rows: Mapping[str, Row]
    #: steps of event facets that are worked on
    events: frozenset[str]
    #: how many iterations of a foreach may be under way
    limits: Mapping[str, int]
    children: Mapping[str, Expected]
    #: whether more than one failure could be the reason for an end, so that the first one is
    ambiguous: bool
