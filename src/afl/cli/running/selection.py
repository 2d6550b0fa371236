"""Which runs a command is about: by their ids, or by a filter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from afl.base.durations import parse_duration
from afl.base.errors import DurationError
from afl.cli.errors import RequestError
from afl.lang.diagnostics.suggest import nearest
from afl.runtime.entities import Run
from afl.runtime.operations import Operations
from afl.runtime.states import RunState

STATES = (
    RunState.CREATED,
    RunState.RUNNING,
    RunState.PAUSED,
    RunState.COMPLETED,
    RunState.FAILED,
    RunState.CANCELED,
)
KEYS = ("state", "workflow", "parent", "older", "newer", "label.NAME")
_LABEL = "label."
_PAGE = 200


@dataclass(slots=True)
class Filter:
    """What runs must have in common; nothing set means all."""

    state: str | None = None
    workflow: str | None = None
    parent: str | None = None
    #: made longer ago than this, and more recently than this
    older: timedelta | None = None
    newer: timedelta | None = None
    labels: dict[str, str] = field(default_factory=dict)
    #: only runs that no other run has called
    roots: bool = False

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]]) -> Filter:
        """The filter of `--filter NAME=VALUE`, given any number of times."""
        found = cls()
        for name, text in pairs:
            if name.startswith(_LABEL):
                found.labels[name.removeprefix(_LABEL)] = text
            elif name == "state":
                found.state = known_state(text)
            elif name in ("workflow", "parent"):
                setattr(found, name, text)
            elif name in ("older", "newer"):
                setattr(found, name, _span(name, text))
            else:
                guess = nearest(name, KEYS)
                raise RequestError(
                    f"runs cannot be filtered by `{name}`",
                    help=f"did you mean `{guess}`?" if guess else f"use {', '.join(KEYS)}",
                )
        return found


def known_state(text: str) -> str:
    """A state of a run by its name."""
    if text in STATES:
        return text
    guess = nearest(text, STATES)
    raise RequestError(
        f"there is no state '{text}' of a run",
        help=f"did you mean `{guess}`?" if guess else f"the states are {', '.join(STATES)}",
    )


def find(
    operations: Operations, wanted: Filter, *, limit: int, before: str | None = None
) -> list[Run]:
    """The newest runs that fit, at most so many."""
    found: list[Run] = []
    for run in _candidates(operations, wanted, before):
        if len(found) == limit:
            break
        found.append(run)
    return found


def _candidates(operations: Operations, wanted: Filter, before: str | None) -> Iterator[Run]:
    now = operations.persistence.now()
    while True:
        page = operations.list(
            state=wanted.state,
            workflow=wanted.workflow,
            labels=wanted.labels or None,
            parent=wanted.parent,
            before=before,
            limit=_PAGE,
        )
        for run in page:
            old = timedelta(0) if run.created_at is None else now - run.created_at
            if wanted.newer is not None and old > wanted.newer:
                # the newest come first, so those that follow are older still
                return
            if wanted.roots and run.parent is not None:
                continue
            if wanted.older is None or old > wanted.older:
                yield run
        if len(page) < _PAGE:
            return
        before = page[-1].id


def _span(name: str, text: str) -> timedelta:
    try:
        return timedelta(milliseconds=parse_duration(text))
    except DurationError as error:
        raise RequestError(f"--filter {name}: {error.message}") from error
    except OverflowError:
        raise RequestError(f"--filter {name}: '{text}' is longer than anything lasts") from None
