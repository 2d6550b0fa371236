"""The base of what states do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from afl.base.errors import AflError
from afl.kernel.model import Json
from afl.runtime.context import ExecutionContext, Unloaded
from afl.runtime.scope import Place
from afl.runtime.step import StepDefinition


@dataclass(slots=True)
class StateChangeResult:
    """What came of a state's action. The state that the step is in now says where it goes on."""

    step: StepDefinition
    success: bool = True
    error: Exception | None = None
    continue_processing: bool = True


class StateHandler(ABC):
    """What a step does when it enters a state, or when something it waits for there has come.

    It reads and changes the step and its context, and nothing else.
    """

    state_name: ClassVar[str] = ""

    __slots__ = ("context", "step")

    def __init__(self, step: StepDefinition, context: ExecutionContext) -> None:
        self.step = step
        self.context = context

    def process(self) -> StateChangeResult:
        """Acts, and turns what goes wrong into a failure of the step."""
        state = self.step.state
        telemetry = self.context.telemetry
        telemetry.log_state_begin(self.step, state)
        try:
            result = self.process_state()
        except Unloaded:
            raise
        except StepFailure as failure:
            return StateChangeResult(self.step, False, failure, False)
        except AflError as error:
            # what the program or its values did wrong; anything else is a fault of ours
            telemetry.log_error(self.step, state, error)
            return StateChangeResult(self.step, False, error, False)
        telemetry.log_state_end(self.step, state)
        return result

    @abstractmethod
    def process_state(self) -> StateChangeResult:
        """What this state does."""
        ...

    def transition(self) -> StateChangeResult:
        """Goes on to the state that follows."""
        self.step.request_state_change(True)
        return StateChangeResult(self.step)

    def stay(self, push: bool = False) -> StateChangeResult:
        """Waits in this state; with `push`, only for its next turn."""
        if push:
            self.context.push(self.step.path)
        return StateChangeResult(self.step, continue_processing=push)

    def error(self, exception: Exception) -> StateChangeResult:
        """Fails the step; a catch may still take over."""
        return StateChangeResult(self.step, False, exception, False)

    @property
    def place(self) -> Place:
        """Where the step's statement stands."""
        return Place.of(self.context, self.step)


class StepFailure(Exception):
    """A step fails with the error of another one, as it is."""

    def __init__(self, error: Mapping[str, Json]) -> None:
        super().__init__(error.get("message"))
        self.stored = dict(error)
