"""What can be told about a worker: counts. Threads share it."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field


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
