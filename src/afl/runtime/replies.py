"""Answers to the calls of a run."""

from __future__ import annotations

from dataclasses import dataclass

from afl.kernel.model import CallStatus, Json


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. The key is the path of the step, with a tag behind `#` where it has several."""

    key: str
    status: CallStatus
    body: Json
