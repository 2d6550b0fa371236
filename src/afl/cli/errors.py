"""The errors of commands.

AflError
├── CommandError       a command cannot do its work; says what would help
│   ├── InputError     a file or an input could not be read, found or written
│   ├── MissingError   what the command line names is not there
│   ├── RequestError   what the command line asks for makes no sense
│   └── NotEndedError  a run has not ended
└── ReaderGoneError    nobody reads the output any more
"""

from __future__ import annotations

from typing import ClassVar

from afl.base.errors import AflError
from afl.cli import exit_codes


class CommandError(AflError):
    """The command could not do its work."""

    code = "command"
    exit_code: ClassVar[int] = exit_codes.FAILED

    def __init__(self, message: str | None = None, *, help: str = "") -> None:
        super().__init__(message)
        self.help = help
        """What to do about it, best a command; may be empty."""


class InputError(CommandError):
    """A file could not be read or written."""

    code = "input"
    exit_code = exit_codes.UNREADABLE


class MissingError(CommandError):
    """What the command line names is not there."""

    code = "missing"
    exit_code = exit_codes.UNREADABLE


class RequestError(CommandError):
    """What the command line asks for makes no sense."""

    code = "request"
    exit_code = exit_codes.USAGE


class NotEndedError(CommandError):
    """The run has not ended."""

    code = "not-ended"
    exit_code = exit_codes.NOT_ENDED


class ReaderGoneError(AflError):
    """Nobody reads the output any more."""

    code = "reader-gone"


def cannot(action: str, path: str, cause: OSError, *, help: str = "") -> InputError:
    """The error of an `OSError`: what failed, where and why."""
    reason = (cause.strerror or str(cause)).lower()
    return InputError(f"cannot {action} {path}: {reason}", help=help)
