"""What a window on the steps of a run is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from afl.runtime.step import ROOT, StepDefinition


@dataclass(frozen=True, slots=True)
class StepMatch:
    """Which steps are wanted: those that fit everything that is set."""

    #: of `StepState`
    states: frozenset[str] | None = None
    facet: str | None = None
    #: the statement of the program that they are steps of, by its id
    statement: str | None = None
    #: a part of the path, the facet's name or the message of the error, in small letters or
    #: capitals; never a pattern
    text: str | None = None

    def fits(self, step: StepDefinition) -> bool:
        """Whether a step is wanted."""
        return (
            (self.states is None or step.state in self.states)
            and (self.facet is None or step.facet_name == self.facet)
            and (self.statement is None or step.statement_id == self.statement)
            and (not self.text or _has_text(step, self.text.lower()))
        )


@dataclass(frozen=True, slots=True)
class StepTimes:
    """When a step was made, was last changed, and came to its end."""

    created_at: datetime
    changed_at: datetime
    ended_at: datetime | None


def below(path: str) -> tuple[str, str]:
    """Two texts that everything below a path lies between, the second excluded."""
    # the letter after the slash ends the paths that begin with it
    return ("\x01", "\U0010ffff") if path == ROOT else (f"{path}/", f"{path}0")


def _has_text(step: StepDefinition, text: str) -> bool:
    message = None if step.error is None else step.error.get("message")
    return (
        text in step.path.lower()
        or text in step.facet_name.lower()
        or (isinstance(message, str) and text in message.lower())
    )
