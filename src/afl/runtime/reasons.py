"""Why something is not going on: the answers, as data. `explaining` finds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from afl.kernel.model import Json


class WhyCode(Enum):
    """What something waits for, or how it ended. The only words for it, everywhere."""

    # nobody is at it
    NO_WORKER = "no_worker"  # no live worker serves it
    BUSY = "busy"  # workers serve it, and all their slots are taken
    QUEUED = "queued"  # a worker that serves it is about to take it
    LANE_HELD = "lane_held"  # at most so many at once, and others are at it
    RETRY = "retry"  # it failed and is tried again
    SCHEDULED = "scheduled"  # its time has not come
    WORKER_LOST = "worker_lost"  # the worker that had it does not answer any more
    STOPPING = "stopping"  # it was canceled, and its worker was told
    # somebody or something else has to come first
    TIMER = "timer"
    EVENT = "event"
    PERSON = "person"
    BUDGET = "budget"  # what it may spend is spent or reserved
    BREAKER = "breaker"  # what it calls failed too often, and is left alone for a while
    CHILD_RUN = "child_run"
    CALL = "call"  # a call of its own, such as a tool call of a turn
    UPSTREAM = "upstream"  # not started: a step that it needs has not finished
    LIMIT = "limit"  # iterations that start when others have ended
    PARTS = "parts"  # its own parts have not finished
    PAUSED = "paused"
    # somebody is at it
    RUNNING = "running"
    ANSWERED = "answered"  # answers have come, which a worker has to take in
    # it has ended
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELED = "canceled"


#: What people should know of before all else, the worst first: nobody is at it, or it must not go
#: on yet. The place of each.
_RANKS = {
    WhyCode.NO_WORKER: 0,
    WhyCode.WORKER_LOST: 1,
    WhyCode.BREAKER: 2,
    WhyCode.BUDGET: 3,
    WhyCode.PERSON: 4,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """One reason: a code for machines, a sentence for people, and the command that helps."""

    code: WhyCode
    sentence: str
    #: the path of the step that it is about; None for the run itself
    step: str | None = None
    command: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    detail: Mapping[str, Json] = field(default_factory=dict)

    def as_json(self) -> dict[str, Json]:
        return {
            "code": self.code.value,
            "sentence": self.sentence,
            "step": self.step,
            "command": self.command,
            "since": None if self.since is None else self.since.isoformat(),
            "until": None if self.until is None else self.until.isoformat(),
            "detail": dict(self.detail),
        }


def worst_first(answers: Iterable[Answer]) -> list[Answer]:
    """What people should know of before what goes on by itself; otherwise in their order."""
    return sorted(answers, key=lambda answer: _RANKS.get(answer.code, len(_RANKS)))


@dataclass(frozen=True, slots=True)
class Why:
    """Why a run or a step is where it is. The first answer is the one to read."""

    run: str
    step: str | None
    state: str
    answers: tuple[Answer, ...]
    #: whether there are more answers than are given here
    is_cut: bool = False

    @property
    def sentence(self) -> str:
        return self.answers[0].sentence

    @property
    def command(self) -> str | None:
        return self.answers[0].command

    def as_json(self) -> dict[str, Json]:
        return {
            "run": self.run,
            "step": self.step,
            "state": self.state,
            "answers": [answer.as_json() for answer in self.answers],
            "is_cut": self.is_cut,
        }
