"""The time of the server, which is the only time of a store.

Asking for it in each transaction would cost a round trip each. The server is asked once a second,
and what has passed since is measured here: two processes differ by no more than a round trip.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

_AGE_SECONDS = 1.0
_TICK = timedelta(microseconds=1)


class ServerClock:
    """Times of one process never go back, and no two of them are the same."""

    def __init__(
        self, ask: Callable[[], datetime], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """`ask` is what the server says; it takes a round trip."""
        self._ask = ask
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._base: datetime | None = None
        self._asked = 0.0
        self._last = datetime.min.replace(tzinfo=UTC)

    def now(self) -> datetime:
        at = self._monotonic()
        if self._base is None or at - self._asked >= _AGE_SECONDS:
            self._look(at)
        with self._lock:
            assert self._base is not None
            passed = timedelta(seconds=self._monotonic() - self._asked)
            self._last = max(self._base + passed, self._last + _TICK)
            return self._last

    def _look(self, started: float) -> None:
        """Asks the server; it answered in the middle of the time that this took."""
        said = self._ask()
        ended = self._monotonic()
        with self._lock:
            self._base = said.replace(tzinfo=UTC)
            self._asked = (started + ended) / 2
