"""The real clock and id source: the ports of `clock` and `ids`, answered by this machine."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

_TAIL_BITS = 74  # what a version 7 UUID leaves free: 12 bits above the variant field, 62 below it
_LOW_BITS = 62
_TAIL_END = 1 << _TAIL_BITS
_VERSION = 0x7
_VARIANT = 0b10


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """The current time, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since an arbitrary start that never go back."""
        return time.monotonic()


class SystemIds:
    """Version 7 UUIDs that strictly increase, whatever the clock does.

    Within one millisecond, and while the clock stands still or runs backwards, the next id is the
    last one plus a random step (the "monotonic random" method of RFC 9562, section 6.2). The step
    keeps ids hard to guess from their neighbours. Threads may share one source.
    """

    def __init__(
        self,
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        random_bits: Callable[[int], int] = secrets.randbits,
    ) -> None:
        self._wall_ms = wall_ms
        self._random_bits = random_bits
        self._lock = threading.Lock()
        self._last_ms = -1
        self._tail = 0

    def new_id(self) -> str:
        """A fresh id, greater than every id this source made before."""
        with self._lock:
            self._advance()
            return _uuid7(self._last_ms, self._tail)

    def _advance(self) -> None:
        now_ms = self._wall_ms()
        if now_ms > self._last_ms:
            self._start(now_ms)
            return
        self._tail += 1 + self._random_bits(32)
        if self._tail >= _TAIL_END:
            # No room left in this millisecond: borrow the next one rather than repeat an id.
            self._start(self._last_ms + 1)

    def _start(self, ms: int) -> None:
        self._last_ms = ms
        # One bit is left clear, so that a fresh millisecond always has room to count up.
        self._tail = self._random_bits(_TAIL_BITS - 1)


def _uuid7(ms: int, tail: int) -> str:
    high, low = tail >> _LOW_BITS, tail & ((1 << _LOW_BITS) - 1)
    text = f"{ms << 80 | _VERSION << 76 | high << 64 | _VARIANT << _LOW_BITS | low:032x}"
    # what UUID would do, in a third of its time
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
