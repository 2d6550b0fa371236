"""The one vocabulary for where a step is.

The row of a step says whether it has ended. Where one that has not ended is, only the task of its
outside work tells: nobody has taken it, a worker is at it, it waits.
"""

from __future__ import annotations

from collections.abc import Mapping

from afl.kernel.model import Json, State
from afl.runtime.history import WORK
from afl.runtime.states import StepState
from afl.runtime.tallies import Tally
from afl.server.models.runs import Progress, StepWord

#: How a step has ended.
ENDED: Mapping[str, StepWord] = {
    StepState.STATEMENT_COMPLETE: "done",
    StepState.STATEMENT_ERROR: "failed",
    StepState.STATEMENT_SKIPPED: "skipped",
}
_LONGEST = 300
_WAITING = ("timer", "signal")


def word_of_task(kind: str, state: State, *, is_due: bool, is_lost: bool) -> StepWord:
    """Where the outside work of a step is that has not ended."""
    if kind == "human":
        return "needs_you"
    if kind in _WAITING:
        return "waiting"
    match state:
        case State.RUNNING:
            return "lost" if is_lost else "running"
        case State.QUEUED:
            return "queued"
        case State.READY:
            # a run that was called is ready whenever an answer has come for it
            if kind == "flow":
                return "running"
            return "queued" if is_due else "waiting"
        case _:
            return "running" if kind == "flow" else "waiting"


def progress_of(tallies: list[Tally]) -> Progress:
    """How far a run is, by the steps that do work: see `WORK`."""
    counts: dict[StepWord | None, int] = {}
    for tally in tallies:
        if tally.object_type in WORK:
            word = ENDED.get(tally.state)
            counts[word] = counts.get(word, 0) + tally.steps
    return Progress(
        total=sum(counts.values()),
        done=counts.get("done", 0),
        failed=counts.get("failed", 0),
        skipped=counts.get("skipped", 0),
        open=counts.get(None, 0),
    )


def one_line(error: Mapping[str, Json] | None) -> str | None:
    """An error in one line."""
    if error is None:
        return None
    message = str(error.get("message") or "").partition("\n")[0]
    type_ = str(error.get("type") or error.get("code") or "")
    text = ": ".join(part for part in (type_, message) if part) or "It failed."
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
