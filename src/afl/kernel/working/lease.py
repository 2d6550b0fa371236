"""What a worker may think of its own lease, by its own clock. Threads share it."""

from __future__ import annotations

import time
from collections.abc import Callable

#: How much of a lease is not relied on: clocks run at different speeds, and what is begun now takes
#: effect a little later.
MARGIN = 0.2


def _awake_or_asleep() -> float:
    """Seconds that go on while the machine is suspended, where the system can tell."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class Lease:
    """The time for which the store is sure to take this worker for alive.

    It counts from when a renewal was asked for, so it never ends later than the store thinks.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = _awake_or_asleep) -> None:
        self._seconds = seconds
        self._clock = clock
        self._asked = clock()
        #: when it was first renewed after it had ended
        self._regained: float | None = None

    def ask(self) -> float:
        """The time at which a renewal is asked for, to be handed to `renewed`."""
        return self._clock()

    def renewed(self, asked: float) -> None:
        """The renewal that was asked for then was granted."""
        if self._clock() >= self._asked + self._seconds:
            self._regained = self._clock()
        self._asked = asked

    @property
    def is_safe(self) -> bool:
        """Whether nobody else can have been given what this worker holds, nor will be right now."""
        return self._clock() < self._asked + self._seconds * (1 - MARGIN)

    @property
    def may_judge(self) -> bool:
        """Whether this worker may call others lost. After it has been cut off itself it cannot know
        whether they were too: they get a lease to come back."""
        now = self._clock()
        if now >= self._asked + self._seconds:
            return False
        return self._regained is None or now >= self._regained + self._seconds
