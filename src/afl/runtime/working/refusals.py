"""What is done when the store refuses a part."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from afl.kernel.errors import Fenced
from afl.kernel.model import Close, Commit, Suspend, Then
from afl.kernel.working.hands import Hands, Held
from afl.kernel.working.task_fields import task_fields
from afl.runtime.replies import Reply
from afl.runtime.step import ROOT, WorkflowId, error_of
from afl.runtime.superseded import Superseded
from afl.runtime.working.flows import Flows
from afl.runtime.working.outcomes import bad_result, facet_of, reply_of, run_of, step_of
from afl.runtime.working.parts import Part
from afl.runtime.working.runs_in_hand import RunInHand

_log = logging.getLogger("afl.worker")


def superseded(part: Part, worker: str) -> list[Superseded]:
    """The results of a part whose fence was lost: somebody else has been given the work."""
    found = [] if part.flow is None else superseded_answers(part.flow, part.answers, worker)
    for held, commit in zip(part.ended, part.commits, strict=False):
        found += superseded_end(held, commit.then, worker)
    return found


def superseded_answers(run: RunInHand, answers: Iterable[Reply], worker: str) -> list[Superseded]:
    """The same, of work at hand for a run."""
    return [
        Superseded(WorkflowId(run.task.id), reply.key, worker, reply.status, reply.body)
        for reply in answers
    ]


def superseded_end(held: Held, then: Then, worker: str) -> list[Superseded]:
    """The same, of one attempt."""
    task = held.claim.task
    run, path = run_of(task), step_of(task)
    if not isinstance(then, Close) or run is None or path is None:
        return []
    return [Superseded(WorkflowId(run), path, worker, *reply_of(then))]


def split(part: Part, error: Exception, flows: Flows, hands: Hands) -> list[Part]:
    """What to commit instead of a part that was refused when it was committed alone.

    Several commits are taken apart, and the flow is let go. A fence that was lost is dropped. What
    the store cannot take is a failure of whoever has made it.
    """
    run = part.flow
    if len(part.commits) > 1:
        parts = [
            Part([commit], [held]) for held, commit in zip(part.ended, part.commits, strict=False)
        ]
        if run is not None:
            letting_go = Commit(run.held.fence, Suspend(), run.number)
            parts.append(Part([letting_go], flow=run, answers=part.answers))
        return parts
    if run is not None:
        if isinstance(error, Fenced) or part.turn is None:
            flows.forget(run)
            return []
        _log.warning("run %s is given up: %s", run.task.id, error, extra=task_fields(run.task))
        given_up = Part(flow=run)
        flows.give_up(given_up, error_of(error, ROOT))
        return [given_up]
    (held,), (commit,) = part.ended, part.commits
    if isinstance(error, Fenced) or part.replaces_refused:
        hands.drop(held.fence)
        return []
    task = held.claim.task
    _log.warning("the result of task %s is refused: %s", task.id, error, extra=task_fields(task))
    name = facet_of(held.claim.task)
    close = bad_result(name, f"answered with something that cannot be stored: {error}")
    return [Part([Commit(held.fence, close, commit.number)], [held], replaces_refused=True)]
