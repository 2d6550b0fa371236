"""What an iteration tells about itself while it runs."""

from __future__ import annotations

from typing import Protocol

from afl.runtime.step import StepDefinition


class Telemetry(Protocol):
    """Hears of every action that a state of a step takes."""

    def log_state_begin(self, step: StepDefinition, state: str) -> None: ...
    def log_state_end(self, step: StepDefinition, state: str) -> None: ...
    def log_error(self, step: StepDefinition, state: str, error: Exception) -> None: ...


class Silence:
    """Tells nobody."""

    def log_state_begin(self, step: StepDefinition, state: str) -> None:
        pass

    def log_state_end(self, step: StepDefinition, state: str) -> None:
        pass

    def log_error(self, step: StepDefinition, state: str, error: Exception) -> None:
        pass


SILENT = Silence()
