"""What the work of event facets comes to: a pure function of the facet and its parameters.

So what a program comes to is determined, whoever does its work, how often, and in which order.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from afl.kernel.model import Json

#: Event facets of generated programs. The last one is tried again after failures.
EVENTS = ("sim.Ask", "sim.Get", "sim.Flaky")
FLAKY = "sim.Flaky"
#: How often a flaky facet is tried in all.
ATTEMPTS = 3

_FAILING = 12
_UNFIT = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """A result, or an error; `hiccups` failures come before it that the retry must get over."""

    result: Mapping[str, Json] | None
    error: Mapping[str, Json] | None = None
    hiccups: int = 0


def answer(facet: str, params: Mapping[str, Json]) -> Answer:
    """What a facet answers when it is called with these parameters."""
    if facet not in EVENTS:  # a timer: it is over, and that is all
        return Answer({})
    number = zlib.crc32(f"{facet} {json.dumps(params, sort_keys=True)}".encode())
    chance, rest = number % 100, number // 100
    hiccups = rest % ATTEMPTS if facet == FLAKY else 0
    if chance < _FAILING:
        kind = ("Boom", "Bust")[rest % 2]
        return Answer(None, {"type": kind, "message": f"{kind} {rest % 97}"}, hiccups)
    if chance < _FAILING + _UNFIT:
        return Answer({"v": "not a number", "vs": []}, None, hiccups)
    value = rest % 10
    values: list[Json] = [(rest // 10**place) % 10 for place in range(1, 1 + rest % 4)]
    return Answer({"v": value, "vs": values}, None, hiccups)
