"""A step of a run, as it is stored and as handlers change it.

A path says where a step stands: `0/pull` is the step `pull` of the first clause of the run's
workflow, whose path is the empty text. Parts of a path: a clause's index, the index of an
iteration behind it, a statement's name, `case-N`, `catch` and `facet-catch` (of a step or clause,
and of the facet that a step calls), `with/alias` for a mixin that runs as a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NewType

from afl.kernel.model import Json
from afl.runtime.states import TERMINAL, StepState, transitions_of

WorkflowId = NewType("WorkflowId", str)
StepId = NewType("StepId", str)

ROOT = ""
_BETWEEN = ":"


def step_id(run: str, path: str) -> StepId:
    """The id of a step: its run and its path, so the same step always has the same one."""
    return StepId(f"{run}{_BETWEEN}{path}")


def split_step_id(step: str) -> tuple[WorkflowId, str]:
    """The run and the path that an id is made of."""
    run, _, path = step.partition(_BETWEEN)
    return WorkflowId(run), path


def join(path: str, *parts: str | int) -> str:
    """The path of something below a path."""
    tail = "/".join(map(str, parts))
    return f"{path}/{tail}" if path else tail


def parent_of(path: str) -> str:
    """The path of what a step stands in."""
    head, _, _ = path.rpartition("/")
    if head == "with":
        return ROOT
    return head.removesuffix("/with")


def is_below(path: str, above: str) -> bool:
    """Whether something stands in what is at another path, at any depth."""
    return path != above and (above == ROOT or path.startswith(f"{above}/"))


@dataclass(frozen=True, slots=True)
class Attribute:
    """A value of a step by name."""

    name: str
    value: Json


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a step was given and what it gave."""

    params: Mapping[str, Attribute]
    returns: Mapping[str, Attribute]


@dataclass(slots=True)
class StepDefinition:
    """One node of a run. `frame` holds the counts of a step that waits for others below it.

    What is given to a step counts as fixed: replace the values of `params`, `returns` and `error`,
    do not change what is inside them.
    """

    workflow_id: WorkflowId
    path: str
    object_type: str
    #: the statement, clause, case or catch of the program that it is an instance of
    statement_id: str
    facet_name: str = ""
    state: str = StepState.CREATED
    params: dict[str, Json] = field(default_factory=dict)
    returns: dict[str, Json] = field(default_factory=dict)
    #: `type` and `message` of what failed, and `step`, the path where it began
    error: dict[str, Json] | None = None
    #: the path of the failed step because of which this one never ran
    skipped_because: str | None = None
    #: of a yield: the path of the step that takes the values
    yields_to: str | None = None
    frame: dict[str, Json] = field(default_factory=dict)

    @property
    def id(self) -> StepId:
        return step_id(self.workflow_id, self.path)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def container(self) -> str | None:
        """The path of what it stands in; the root stands in nothing."""
        return parent_of(self.path) if self.path else None

    @property
    def is_terminal(self) -> bool:
        return self.state in TERMINAL

    @property
    def is_complete(self) -> bool:
        return self.state == StepState.STATEMENT_COMPLETE

    @property
    def attributes(self) -> Attributes:
        """The values with their names."""
        return Attributes(
            {name: Attribute(name, value) for name, value in self.params.items()},
            {name: Attribute(name, value) for name, value in self.returns.items()},
        )

    def clone(self) -> StepDefinition:
        """A copy that may be changed without changing this one."""
        return StepDefinition(
            self.workflow_id,
            self.path,
            self.object_type,
            self.statement_id,
            self.facet_name,
            self.state,
            self.params.copy(),
            self.returns.copy(),
            self.error,
            self.skipped_because,
            self.yields_to,
            {k: v.copy() if type(v) is dict else v for k, v in self.frame.items()},
        )

    def set_attribute(self, name: str, value: Json, *, is_return: bool = False) -> None:
        """Gives a parameter, or a return, its value."""
        (self.returns if is_return else self.params)[name] = value

    def request_state_change(self, change: bool) -> None:
        """Moves to the state that follows, or stays where it is."""
        if change:
            self.state = transitions_of(self.object_type)[self.state]

    def mark_completed(self) -> None:
        self.state = StepState.STATEMENT_COMPLETE

    def mark_error(self, error: dict[str, Json] | BaseException) -> None:
        """Ends the step as failed."""
        if isinstance(error, BaseException):
            error = error_of(error, self.path)
        self.error = error
        self.state = StepState.STATEMENT_ERROR

    def mark_skipped(self, because: str) -> None:
        """Ends the step without having run, because of the failed step at that path."""
        self.skipped_because = because
        self.state = StepState.STATEMENT_SKIPPED


def error_of(error: BaseException, path: str) -> dict[str, Json]:
    """An error as it is stored: what flows read as `error.type` and `error.message`."""
    return {"type": type(error).__name__, "message": str(error), "step": path}
