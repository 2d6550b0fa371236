"""Answers to the calls of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from afl.kernel.model import CallStatus, Json

#: Beside the outputs of a called run: what it has yielded to mixins, by alias. No output has such a
#: name.
_MIXINS = "#with"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. The key is the path of the step, with a tag behind `#` where it has several."""

    key: str
    status: CallStatus
    body: Json


def with_mixins(outputs: Mapping[str, Json], records: Mapping[str, Json]) -> dict[str, Json]:
    """What a called run answers: its outputs, and the records of mixins that it has yielded to."""
    return {**outputs, _MIXINS: dict(records)} if records else dict(outputs)


def split_mixins(body: Mapping[str, Json]) -> tuple[Mapping[str, Json], Mapping[str, Json]]:
    """The outputs that an answer has, and the records of mixins."""
    records = body.get(_MIXINS)
    if not isinstance(records, dict):
        return body, {}
    return {name: value for name, value in body.items() if name != _MIXINS}, records
