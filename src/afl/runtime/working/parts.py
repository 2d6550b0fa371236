"""What is committed together: many parts in one transaction, and each by itself if that is refused.

One lost fence makes the store refuse a whole transaction. So that it costs nobody else, the parts
are then committed one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from afl.kernel.errors import NotFound
from afl.kernel.model import Claim, ClaimRequest, Commit, Committed, Json
from afl.kernel.port import Transaction, Writes
from afl.kernel.working.hands import Held
from afl.runtime.evaluator import Evaluator, Turn
from afl.runtime.replies import Reply
from afl.runtime.states import RunState
from afl.runtime.step import WorkflowId
from afl.runtime.working.runs_in_hand import RunInHand


@dataclass(slots=True)
class Part:
    """Commits that are taken all or none: ends of tasks, and after them the step of a flow."""

    commits: list[Commit] = field(default_factory=list)
    #: the tasks that the commits end, in their order; a flow's commit comes last and is not here
    ended: list[Held] = field(default_factory=list)
    flow: RunInHand | None = None
    #: what the flow's commit is made of; None if it only lets go of the flow, or gives it up
    turn: Turn | None = None
    #: the flow is given up with this error
    failure: dict[str, Json] | None = None
    #: it is what is left to say of a result that the store has refused
    replaces_refused: bool = False
    #: what the flow's turn has taken in that is in no row yet: the results of work at hand
    answers: list[Reply] = field(default_factory=list)
    #: what follows from it is under way already, though the store has not taken it yet
    is_told: bool = False

    def end(self, held: Held, commit: Commit) -> None:
        """Adds the end of a task."""
        self.ended.append(held)
        self.commits.append(commit)


@dataclass(frozen=True, slots=True)
class Brought:
    """What a transaction has brought: an answer for each part, and tasks."""

    answers: list[list[Committed]]
    claims: list[Claim]


class Committer:
    """Commits parts, each with the rows of its run."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._kernel = evaluator.persistence.kernel

    def commit(self, parts: Sequence[Part], request: ClaimRequest | None) -> Brought:
        """All parts in one transaction, which also claims, if a request is given."""
        # ends of tasks before the flows that take in their answers, so that the store can do each
        # of the two at once
        ends = [commit for part in parts for commit in part.commits[: len(part.ended)]]
        steps = [commit for part in parts for commit in part.commits[len(part.ended) :]]
        commits = [*ends, *steps]
        if request is not None and not commits:
            return Brought([], self._claim(request))
        writes = self._writes(parts)
        claims: list[Claim] = []
        if request is None:
            done = self._kernel.commit(commits, writes=writes) if commits else []
        else:
            done, claims = self._kernel.commit_and_claim(commits, request, writes=writes)
        ended, stepped = iter(done[: len(ends)]), iter(done[len(ends) :])
        answers = [
            [*islice(ended, len(part.ended)), *islice(stepped, len(part.commits) - len(part.ended))]
            for part in parts
        ]
        return Brought(answers, claims)

    def _claim(self, request: ClaimRequest) -> list[Claim]:
        """Takes tasks, if the worker is alive; the renewal makes it so again."""
        try:
            return self._kernel.claim(request)
        except NotFound:
            return []

    def _writes(self, parts: Sequence[Part]) -> Writes | None:
        turns = [part.turn for part in parts if part.turn is not None]
        failures = [
            (WorkflowId(part.flow.task.id), part.failure)
            for part in parts
            if part.flow is not None and part.failure is not None
        ]
        if not turns and not failures:
            return None

        evaluator = self._evaluator

        def write(transaction: Transaction) -> None:
            evaluator.write(transaction, *turns)
            for run, error in failures:
                evaluator.persistence.finish_run(transaction, run, RunState.FAILED, None, error)

        return write
