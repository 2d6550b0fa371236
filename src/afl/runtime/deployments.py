"""What was deployed when, and what it was made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class DeployedVersion:
    """A program that was deployed under a name."""

    name: str
    program: str
    deployed_at: datetime


class Sources(Protocol):
    """The files that programs were made of, and what was deployed before, for people to read."""

    def save_sources(self, program: str, files: Mapping[str, str]) -> None:
        """Keeps the files of a program, texts by name, in place of those that were kept for it. A
        program that is not known has none."""
        ...

    def get_sources(self, program: str) -> Mapping[str, str]:
        """In the order of their names; empty if none were kept."""
        ...

    def deployment_history(self, name: str, limit: int = 100) -> Sequence[DeployedVersion]:
        """The programs that were deployed under a name, the newest first. One that was deployed
        again while it was the current one is there once."""
        ...
