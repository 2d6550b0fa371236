"""What is wrong with a pipeline, as data. Offsets count characters of the text from 0."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Range:
    """A half-open range of the text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Mark:
    """Another place that has to do with it, and what there is to say about it."""

    range: Range
    label: str


@dataclass(frozen=True, slots=True)
class Fix:
    """What would help, in words and, with a range, as a change. A safe one needs no asking."""

    message: str
    range: Range | None = None
    text: str = ""
    safe: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake. With a warning a pipeline can be run."""

    code: str
    range: Range
    message: str
    label: str = ""
    related: tuple[Mark, ...] = ()
    notes: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    #: one of these words may have been meant instead of what stands there
    candidates: tuple[str, ...] = ()
    is_warning: bool = False


@dataclass(slots=True)
class Problems:
    """The problems of one text, in the order in which they are found."""

    found: list[Problem] = field(default_factory=list)

    @property
    def are_harmless(self) -> bool:
        return all(problem.is_warning for problem in self.found)

    def add(
        self,
        code: str,
        range: Range,
        message: str,
        label: str = "",
        *,
        related: tuple[Mark, ...] = (),
        notes: tuple[str, ...] = (),
        fixes: tuple[Fix, ...] = (),
        candidates: tuple[str, ...] = (),
        is_warning: bool = False,
    ) -> None:
        self.found.append(
            Problem(code, range, message, label, related, notes, fixes, candidates, is_warning)
        )


def listed(words: tuple[str, ...], last: str) -> str:
    """Words as code in a sentence: `a`, `b` and `c`."""
    *most, end = (f"`{word}`" for word in words)
    return f"{', '.join(most)} {last} {end}" if most else end
