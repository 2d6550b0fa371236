"""What is done when the store refuses a part."""

from __future__ import annotations

import logging

from afl.kernel.errors import Fenced
from afl.kernel.model import Commit, Fence, Suspend
from afl.kernel.port import TaskQueue
from afl.runtime.step import ROOT, error_of
from afl.runtime.working.flows import Flows
from afl.runtime.working.hands import Hands
from afl.runtime.working.outcomes import bad_result, facet_of
from afl.runtime.working.parts import Part

_log = logging.getLogger("afl.worker")


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
            parts.append(Part([Commit(run.held.fence, Suspend(), run.number)], flow=run))
        return parts
    if run is not None:
        if isinstance(error, Fenced) or part.turn is None:
            flows.forget(run)
            return []
        _log.warning("run %s is given up: %s", run.task.id, error)
        given_up = Part(flow=run)
        flows.give_up(given_up, error_of(error, ROOT))
        return [given_up]
    (held,), (commit,) = part.ended, part.commits
    if isinstance(error, Fenced) or part.replaces_refused:
        hands.drop(held.fence)
        return []
    _log.warning("the result of task %s is refused: %s", held.claim.task.id, error)
    name = facet_of(held.claim.task)
    close = bad_result(name, f"answered with something that cannot be stored: {error}")
    return [Part([Commit(held.fence, close, commit.number)], [held], replaces_refused=True)]


def give_back(kernel: TaskQueue, fence: Fence) -> None:
    """Returns a task, whatever was committed under its fence before."""
    held, number = True, 0
    while held:
        try:
            (done,) = kernel.commit([Commit(fence, Suspend(), number)])
        except Fenced:
            return
        held, number = done.task.fence == fence, done.task.commits
