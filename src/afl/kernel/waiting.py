"""How a worker without work waits for some: it looks, waits for the doorbell, and looks again.

The doorbell makes it quick, and the poll interval makes it sure: a ring may be lost, and nobody
rings for a task whose delay is over. `PollPolicy` says how long to wait at most; `Lookout` waits.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from afl.base.clock import Clock
from afl.kernel.doorbell import Doorbell

T = TypeVar("T")
#: After so many steps a wait has grown as far as it will, or so slowly that it does not matter.
_MOST_STEPS = 64


@dataclass(frozen=True, slots=True)
class PollPolicy:
    """How long to wait between two looks when no doorbell rings.

    The wait starts at `min_seconds` after work was found, and grows with every look that finds
    nothing. It is cut by a random share of up to `jitter`, so that workers that started together do
    not look together; it is never longer than `max_seconds`, which is the poll interval that a lost
    ring costs.
    """

    min_seconds: float = 0.1
    max_seconds: float = 2.0
    backoff: float = 2.0
    jitter: float = 0.25

    def __post_init__(self) -> None:
        if not 0 < self.min_seconds <= self.max_seconds:
            raise ValueError("the waits must be above zero, and the longest not below the shortest")
        if self.backoff < 1:
            raise ValueError("a backoff below 1 would make the waits shorter and shorter")
        if not 0 <= self.jitter < 1:
            raise ValueError("the jitter is a share: from 0 to less than 1")

    def wait_seconds(self, empty_looks: int, chance: float) -> float:
        """The wait after so many looks that found nothing in a row, the first being 1.

        `chance` is a random number from 0 to 1; it decides the jitter.
        """
        wait = self.min_seconds
        for _ in range(min(empty_looks - 1, _MOST_STEPS)):
            wait = min(wait * self.backoff, self.max_seconds)
        return wait * (1 - self.jitter * chance)


class Lookout:
    """Looks for work until there is some. One thread looks; any thread may stop it."""

    def __init__(
        self,
        doorbell: Doorbell,
        lists: Sequence[str],
        clock: Clock,
        policy: PollPolicy | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """The doorbell stays the caller's; once it is closed, only polling is left.

        Args:
            lists: the task lists whose rings matter.
            chance: random numbers from 0 to 1.
        """
        self._doorbell = doorbell
        self._lists = tuple(lists)
        self._clock = clock
        self._policy = policy or PollPolicy()
        self._chance = chance
        self._stopped = threading.Event()

    def find(self, look: Callable[[], Sequence[T]]) -> Sequence[T]:
        """The first that `look` finds, however long that takes; nothing if it was stopped."""
        empty_looks = 0
        while not self._stopped.is_set():
            found = look()
            if found:
                return found
            empty_looks += 1
            self._wait(self._policy.wait_seconds(empty_looks, self._chance()))
        return ()

    def stop(self) -> None:
        """Ends looking: now if the doorbell rings or is closed, else when the next look is due."""
        self._stopped.set()

    def _wait(self, seconds: float) -> None:
        end = self._clock.monotonic() + seconds
        if not self._doorbell.wait(self._lists, seconds):
            # a closed doorbell does not wait; without this the looks would follow at once
            self._stopped.wait(max(0.0, end - self._clock.monotonic()))
