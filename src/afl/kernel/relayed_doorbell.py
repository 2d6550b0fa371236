"""What doorbells through a database have in common.

A thread listens; another rings, and what is rung while it is busy is put together. Each has a
connection of its own, out of the transactions that do the work, and gets a new one when that is
lost.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager

from afl.kernel.doorbell import LocalDoorbell

_PAUSE_SECONDS = 1.0

#: Tells every process that these lists may have work; none of them is heard too.
Send = Callable[[list[str]], None]


class RelayedDoorbell(ABC):
    """Rings in every process that uses the same database."""

    def __init__(self, lost: type[Exception]) -> None:
        """`lost` is what is raised when a connection is lost."""
        self._lost = lost
        self._local = LocalDoorbell()
        self._condition = threading.Condition()
        self._pending: set[str] = set()
        self._closed = threading.Event()
        self._listening = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._keep, args=(work,), name=f"afl-{work.__name__}", daemon=True
            )
            for work in (self._listen, self._ring_others)
        ]
        for thread in self._threads:
            thread.start()

    def ring(self, lists: Iterable[str]) -> None:
        with self._condition:
            self._pending.update(lists)
            self._condition.notify_all()

    def wait(self, lists: Sequence[str], timeout_seconds: float) -> bool:
        return self._local.wait(lists, timeout_seconds)

    def wait_until_listening(self, timeout_seconds: float) -> bool:
        """Whether rings of others are heard by now."""
        return self._listening.wait(timeout_seconds)

    def close(self) -> None:
        self._closed.set()
        self._local.close()
        with self._condition:
            self._condition.notify_all()
        for thread in self._threads:
            thread.join()

    @abstractmethod
    def _listen(self) -> None:
        """Listens until it is closed: `_begin` when it does, `_heard` for each ring."""

    @abstractmethod
    def _connect_sender(self) -> AbstractContextManager[Send]:
        """What rings, on a connection."""

    def _begin(self) -> None:
        self._listening.set()
        # whatever rang while nobody listened is lost; let everybody look once
        self._local.ring_all()

    def _heard(self, lists: Iterable[str]) -> None:
        self._local.ring(lists)

    def _keep(self, work: Callable[[], None]) -> None:
        """Does the work on a connection, and on a new one when that is lost."""
        while not self._closed.is_set():
            try:
                work()
            except self._lost:
                self._listening.clear()
                self._closed.wait(_PAUSE_SECONDS)

    def _ring_others(self) -> None:
        with self._connect_sender() as send:
            while not self._closed.is_set():
                with self._condition:
                    self._condition.wait_for(lambda: self._pending or self._closed.is_set())
                    lists, self._pending = self._pending, set()
                if not lists:
                    continue
                try:
                    send(sorted(lists))
                except self._lost:
                    self.ring(lists)
                    raise
            # for nobody: it only has the own listener look up, who would else wait out its turn
            send([])
