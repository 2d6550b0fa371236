"""The errors of stored programs.

AflError
└── ProgramFormatError         a JSON value is not a stored program
    ├── ProgramVersionError    it was written by a newer AgentFlow
    └── ProgramHashError       it is not the program that its hash names
"""

from __future__ import annotations

from afl.base.errors import AflError


class ProgramFormatError(AflError):
    """This is not a stored program; compile its source again."""

    code = "program-format"

    def __init__(self, message: str | None = None, *, path: str = "$") -> None:
        super().__init__(f"{path}: {message}" if message else None)
        self.path = path
        """Where in the JSON, such as `$.program.facets[3].clauses[0]`."""


class ProgramVersionError(ProgramFormatError):
    """This program was stored by a newer AgentFlow; upgrade, or compile its source again."""

    code = "program-version"


class ProgramHashError(ProgramFormatError):
    """This program was changed after it was stored; compile its source again."""

    code = "program-hash"
