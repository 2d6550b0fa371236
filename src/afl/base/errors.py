"""The errors that AgentFlow raises on purpose.

    AflError
    ├── ConfigError      a setting is unknown or has an impossible value
    └── DurationError    a text is not a duration, or a number cannot be one

Each package adds its own errors under `AflError`, in its own `errors.py`. Two class attributes let
a caller act without reading the message: `code` names the kind for machines and never changes once
published; `retryable` says whether the same call may succeed later. The docstring of a class is
the message of an error raised without one, so an error cannot go undocumented.
"""

from __future__ import annotations

import inspect
from typing import ClassVar


class AflError(Exception):
    """Something went wrong in AgentFlow."""

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or inspect.getdoc(type(self)) or type(self).__name__)

    @property
    def message(self) -> str:
        """The text for people, without the name of the class."""
        return str(self)


class ConfigError(AflError):
    """A setting is unknown or has a value that it cannot have."""

    code = "config"


class DurationError(AflError):
    """This is not a duration; write a number and a unit, such as 30s or 1h30m."""

    code = "duration"
