"""Doorbells: tell whoever waits for work that there may be some.

A ring is a hint and nothing more. It is given after the commit, it may be lost, and it may come
without need; whoever waits looks again after its poll interval in any case, so a lost ring costs
one interval and never a task. `LocalDoorbell` rings within a process; `postgres.doorbell` and
`nats_doorbell` carry rings between processes.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol


class Doorbell(Protocol):
    """Rings by task list. Threads may share one."""

    def ring(self, lists: Iterable[str]) -> None:
        """Tells that these lists may have work. Never fails and never waits for long."""
        ...

    def wait(self, lists: Sequence[str], timeout_seconds: float) -> bool:
        """Waits for a ring that this thread has not heard; tells whether there was one.

        What rang since this thread's last wait counts, so nothing is missed between looking for
        work and waiting for it.
        """
        ...

    def close(self) -> None:
        """Ends all waiting. The doorbell is not usable afterwards."""
        ...


class LocalDoorbell:
    """Rings within this process. For others it means polling."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._rings: Counter[str] = Counter()
        self._heard = threading.local()
        self._closed = False

    def ring(self, lists: Iterable[str]) -> None:
        with self._condition:
            self._rings.update(lists)
            self._condition.notify_all()

    def ring_all(self) -> None:
        """Rings every list that anybody has waited for: for when rings may have been lost."""
        with self._condition:
            self._rings.update(list(self._rings))
            self._condition.notify_all()

    def wait(self, lists: Sequence[str], timeout_seconds: float) -> bool:
        heard: dict[str, int] = self._heard.__dict__
        with self._condition:
            for name in lists:
                self._rings.setdefault(name, 0)
            rung = self._condition.wait_for(
                lambda: self._closed or self._is_news(lists, heard), timeout_seconds
            )
            heard.update((name, self._rings[name]) for name in lists)
        return rung and not self._closed

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def _is_news(self, lists: Sequence[str], heard: dict[str, int]) -> bool:
        return any(self._rings[name] > heard.get(name, 0) for name in lists)
