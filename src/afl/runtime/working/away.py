"""A store that is away: what it is to be told when it is back, and when to try again.

Runs that are placed on this worker go on meanwhile: see `Flows.go_on_unseen`. What they come to is
told in its order, one transaction each, under the numbers that it would have had.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from time import monotonic

from afl.runtime.working.parts import Part

#: How long to wait before the next try.
RETRY_SECONDS = 1.0


class Away:
    """Used by the dispatcher's thread alone."""

    def __init__(self) -> None:
        self.backlog: deque[Part] = deque()
        self._next_try: float | None = None

    def begins(self) -> None:
        """The store did not answer."""
        self._next_try = monotonic() + RETRY_SECONDS

    def ends(self) -> None:
        """The store has answered."""
        self._next_try = None

    def put_first(self, parts: Iterable[Part]) -> None:
        """Has parts told before all others, in this order."""
        self.backlog.extendleft(reversed(list(parts)))

    @property
    def seconds_left(self) -> float:
        """How long the store is to be left alone."""
        return 0.0 if self._next_try is None else max(0.0, self._next_try - monotonic())
