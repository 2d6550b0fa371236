"""How many steps a run has, by statement and state: kept when steps are written, never counted."""

from __future__ import annotations

from dataclasses import dataclass

from afl.runtime.step import StepDefinition


@dataclass(frozen=True, slots=True, order=True)
class Tally:
    """So many steps of a statement are in a state."""

    statement_id: str
    facet_name: str
    object_type: str
    #: as `StepState` has it
    state: str
    steps: int


#: What steps are counted by, in the order of the fields of `Tally`.
Kind = tuple[str, str, str, str]


def kind_of(step: StepDefinition) -> Kind:
    """What a step is counted as."""
    return step.statement_id, step.facet_name, step.object_type, step.state
