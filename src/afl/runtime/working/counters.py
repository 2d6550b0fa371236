"""What can be told about a worker: counts, and how its loops fare. Threads share it."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from time import monotonic


@dataclass(slots=True)
class LoopHealth:
    """How work that is done again and again fares."""

    name: str
    errors: int = 0
    last_error: str | None = None
    #: on the monotonic clock; None if it never was
    last_success: float | None = None

    def succeeded(self) -> None:
        self.last_success = monotonic()

    def failed(self, error: BaseException) -> None:
        self.errors += 1
        self.last_error = f"{type(error).__name__}: {error}"

    def age_seconds(self) -> float | None:
        """How long ago it last went well."""
        return None if self.last_success is None else monotonic() - self.last_success


@dataclass(slots=True)
class Counters:
    """Counts since the worker started."""

    claims: int = 0
    commits: int = 0
    transactions: int = 0
    #: parts that the store refused when they were committed alone
    refused: int = 0
    late_results: int = 0
    turns: int = 0
    stays: int = 0
    in_flight: int = 0
    flows_in_hand: int = 0
    _handled: Counter[tuple[str, str]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def handled(self, facet: str, outcome: str) -> None:
        with self._lock:
            self._handled[facet, outcome] += 1

    def by_facet(self) -> dict[tuple[str, str], int]:
        """How many tasks ended, by facet and outcome."""
        with self._lock:
            return dict(self._handled)
