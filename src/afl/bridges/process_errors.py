"""How commands fail, under the types that flows catch and retry by."""

from __future__ import annotations

from typing import ClassVar

from afl.exec.model import Outcome
from afl.runtime.handler_table import Permanent

_LAST_LINES = 10
_LAST_CHARACTERS = 2000


class CommandFailed(Exception):
    """A command has failed, and might not the next time."""

    error_type: ClassVar[str] = "afl.exec.Failed"


class Stopped(CommandFailed):
    """A command was stopped, because its result is not wanted any more."""

    error_type = "afl.exec.Stopped"


class ExitCode(CommandFailed):
    """A command has ended with a code that does not mean success, or by a signal."""

    error_type = "afl.exec.ExitCode"

    def __init__(self, name: str, outcome: Outcome) -> None:
        end = f"with exit code {outcome.exit_code}"
        if outcome.signal is not None:
            end = f"by {outcome.signal} (exit code {outcome.exit_code})"
        super().__init__(_with_errors(f"`{name}` ended {end}.", outcome))


class TimedOut(CommandFailed):
    """A command took longer than its `timeout`."""

    error_type = "afl.exec.Timeout"

    def __init__(self, name: str, outcome: Outcome) -> None:
        seconds = f"{outcome.duration_seconds:.1f} s"
        super().__init__(
            _with_errors(f"`{name}` was ended by its timeout after {seconds}.", outcome)
        )


class OutOfMemory(CommandFailed):
    """A command in the sandbox, with all that it started, had too much in memory."""

    error_type = "afl.exec.OutOfMemory"

    def __init__(self, name: str, outcome: Outcome) -> None:
        super().__init__(_with_errors(f"`{name}` was killed for the memory it took.", outcome))


class BadCommand(Permanent):
    """The command cannot be run here as it is given."""

    error_type = "afl.exec.BadCommand"


class NoSandbox(Permanent):
    """There is no sandbox on this worker."""

    error_type = "afl.exec.NoSandbox"


def _with_errors(message: str, outcome: Outcome) -> str:
    """A message with the last lines of standard error."""
    lines = "\n".join(outcome.stderr.last_lines(_LAST_LINES))[-_LAST_CHARACTERS:]
    return f"{message}\n{lines}" if lines else message
