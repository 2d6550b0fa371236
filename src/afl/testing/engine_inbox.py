"""The people of an engine: a test answers what they are asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from afl.kernel.model import Json
from afl.runtime.inbox import InboxItem
from afl.runtime.operations import Operations

_BY = "test"


class Driven(Protocol):
    """What goes on when an answer is there."""

    @property
    def operations(self) -> Operations: ...
    def drive(self) -> None: ...


class EngineInbox:
    """What waits for people in an engine."""

    def __init__(self, engine: Driven) -> None:
        self._engine = engine

    def list(self, group: str | None = None) -> list[InboxItem]:
        """What waits for an answer, the oldest first."""
        return self._engine.operations.inbox.list(group)

    def answer(
        self, values: Mapping[str, Json], *, facet: str | None = None, by: str = _BY
    ) -> None:
        """Answers what waits, and goes on. Where several do, `facet` says which: the oldest of it.

        Raises:
            AssertionError: nothing waits, or it is not clear which is meant.
        """
        self._engine.operations.inbox.answer(self._the_one(facet).task, values, by=by)
        self._engine.drive()

    def reject(self, reason: str = "", *, facet: str | None = None, by: str = _BY) -> None:
        """Refuses what waits, and goes on; as `answer`."""
        self._engine.operations.inbox.reject(self._the_one(facet).task, reason, by=by)
        self._engine.drive()

    def _the_one(self, facet: str | None) -> InboxItem:
        waiting = self.list()
        fits = [
            item
            for item in waiting
            if facet is None or facet in (item.facet, item.facet.rpartition(".")[2])
        ]
        if not fits:
            there = ", ".join(f"`{item.facet}`" for item in waiting) or "nothing"
            wanted = "a person" if facet is None else f"a person to do `{facet}`"
            raise AssertionError(f"Nothing waits for {wanted}. What waits: {there}.")
        if facet is None and len(fits) > 1:
            names = ", ".join(f"`{item.facet}`" for item in fits)
            raise AssertionError(f"Several wait for a person: {names}. Say which with `facet`.")
        return fits[0]
