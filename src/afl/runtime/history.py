"""What people ask of a run beside its steps: what happened in it, and where its open work is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from afl.kernel.model import Json, State
from afl.runtime.entities import Run
from afl.runtime.states import ObjectType
from afl.runtime.step import WorkflowId

#: What does work: calls of facets and workflows, and scripts. Not the root, which is the run
#: itself, nor blocks, yields, values and `sys` statements, which only hold or carry work.
WORK = frozenset((ObjectType.VARIABLE_ASSIGNMENT, ObjectType.MIXIN, ObjectType.AND_SCRIPT))


@dataclass(frozen=True, slots=True)
class OpenWork:
    """So many steps of one statement have outside work that is at the same point."""

    statement_id: str
    facet_name: str
    object_type: str
    #: of the steps, as `StepState` has it
    state: str
    #: of their tasks: event, turn, script, human, timer, signal, flow …
    kind: str
    task_state: State
    #: whether the time has come from which on the tasks may be taken
    is_due: bool
    #: whether the worker that has the task gives no sign of life any more
    is_lost: bool
    steps: int


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """A place in the history of a run. What happened at one time is in the order of paths."""

    at: datetime
    path: str
    what: str


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened to a step. `what` is started, done, failed, skipped, lost (its worker
    was) or superseded (a result came too late)."""

    moment: Moment
    facet_name: str = ""
    worker: str | None = None
    task: str | None = None
    error: Mapping[str, Json] | None = None
    skipped_because: str | None = None
    #: the run that the result was taken from, or `cache`
    reused: str | None = None


class History(Protocol):
    """What happened in a run, where its open work is, and what came of it."""

    def open_work(self, run: WorkflowId, limit: int = 2000) -> list[OpenWork]:
        """Where the outside work of the steps of a run is that has not ended, counted; of so many
        steps at most. What it costs does not depend on the rest of the run."""
        ...

    def dead_work(self, run: WorkflowId, limit: int = 2000) -> Mapping[str, int]:
        """How many steps of each statement failed because their work was given up, of so many
        failed steps at most. What it costs does not depend on the rest of the run."""
        ...

    def history(
        self,
        run: WorkflowId,
        *,
        before: Moment | None = None,
        problems_only: bool = False,
        limit: int = 100,
    ) -> list[Happening]:
        """What happened to the steps that do work, the last first, from before the given moment;
        to all of them, or to those with an error. What all cost grows with the run."""
        ...

    def forks_of(self, run: WorkflowId, limit: int = 100) -> list[Run]:
        """The runs that were forked or retried from a run, the newest first."""
        ...
