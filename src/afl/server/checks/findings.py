"""What a check has found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Grade(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    check: str
    grade: Grade
    text: str
    #: the command that fixes it, or what else to do; empty if nothing is wrong
    fix: str = ""

    def as_json(self) -> dict[str, str | None]:
        return {
            "check": self.check,
            "grade": self.grade.value,
            "text": self.text,
            "fix": self.fix or None,
        }


def ok(check: str, text: str) -> Finding:
    return Finding(check, Grade.OK, text)


def warn(check: str, text: str, fix: str) -> Finding:
    return Finding(check, Grade.WARN, text, fix)


def fail(check: str, text: str, fix: str) -> Finding:
    return Finding(check, Grade.FAIL, text, fix)
