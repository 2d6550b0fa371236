"""How a turn closes: with its deliverable, in one commit, on every way out. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from afl.base.errors import AflError
from afl.kernel.model import CallId, CardSpec, Close, Json, Outcome
from afl.kernel.rules import failure_retries
from afl.turns.cards import storable, write
from afl.turns.changes import Changes
from afl.turns.deliverable import TEXT, unfinished
from afl.turns.journal import Problem
from afl.turns.model import Deliverable, Ending
from afl.turns.transcript import Turn

LIMIT_CODE, BUDGET_CODE, STOPPED_CODE = "turns.limit", "turns.budget", "turns.stopped"
_OUTCOMES = {Ending.STOPPED: Outcome.CANCELED, Ending.TIMEOUT: Outcome.TIMEOUT}


def delivered(
    deliverable: Deliverable, cards: Sequence[CardSpec], applied: tuple[CallId, ...]
) -> Changes:
    """The turn is done, or at least has something to deliver."""
    outcome = Outcome.PARTIAL if deliverable.partial else Outcome.SUCCESS
    close = Close(outcome, result=_result(deliverable))
    return Changes(close, (*cards, write(deliverable)), applied=applied)


def ended_early(
    turn: Turn,
    ending: Ending,
    problem: Problem,
    *,
    cards: Sequence[CardSpec] = (),
    applied: tuple[CallId, ...] = (),
    permanent: bool = True,
) -> Changes:
    """The turn ends before it is done. What it knows is delivered, marked as partial; the cards of
    this commit are in its journal already.

    A failure that is not permanent and will be tried again is no end, and delivers nothing.
    """
    said = storable(_error(problem))
    deliverable = unfinished(turn.brief, turn.cards, ending, problem.message)
    has_text = turn.brief.returns is None and TEXT in deliverable.fields
    if ending in (Ending.LIMIT, Ending.BUDGET) and has_text:
        close = Close(Outcome.PARTIAL, result=_result(deliverable), error=said)
    else:
        outcome = _OUTCOMES.get(ending, Outcome.FAILED)
        close = Close(outcome, error=said, permanent=permanent)
    noted = (*cards, write(problem))
    if failure_retries(turn.task, close):
        return Changes(close, noted, applied=applied)
    return Changes(close, (*noted, write(deliverable)), applied=applied)


def never_begun(failure: AflError) -> Changes:
    """The turn of a task that cannot be briefed."""
    problem = Problem(failure.code, failure.message)
    deliverable = Deliverable(Ending.FAILED, partial=True, message=problem.message)
    close = Close(Outcome.FAILED, error=storable(_error(problem)), permanent=True)
    return Changes(close, (write(problem), write(deliverable)))


def _error(problem: Problem) -> Json:
    """What the caller gets: `turns.model_busy` is the type `ModelBusy` in a flow's `catch`."""
    words = problem.code.rpartition(".")[2].split("_")
    type_ = "".join(word.capitalize() for word in words)
    return {"type": type_, "code": problem.code, "message": problem.message}


def _result(deliverable: Deliverable) -> Json:
    """What the caller gets. A caller that knows only answers and errors sees what is partial."""
    if not deliverable.partial:
        return storable(deliverable.fields)
    return storable({**deliverable.fields, "partial": deliverable.message})
