"""Diagnostics as data: what a renderer, an editor or a language model must know of a mistake."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from afl.lang.source import Span


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"


class Applicability(Enum):
    """Whether a tool may apply a suggestion without asking."""

    SAFE = "safe"
    MAYBE = "maybe"


@dataclass(frozen=True, slots=True)
class Label:
    """A place in the source and what there is to say about it. The text may be empty."""

    span: Span
    text: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace a span by a text; an empty span inserts, an empty text deletes."""

    span: Span
    replacement: str


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change that would help, in words and, where it can be had, as edits."""

    message: str
    edits: tuple[Edit, ...] = ()
    applicability: Applicability = Applicability.MAYBE


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake: a stable code, one sentence, the place, and what helps to mend it."""

    code: str
    severity: Severity
    message: str
    primary: Label
    secondary: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR
