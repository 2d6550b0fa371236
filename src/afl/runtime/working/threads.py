"""Threads that run handlers: as many as are needed, kept for the next up to a number.

A pool of a fixed size would be used up by handlers that never end. Here a handler that was given up
keeps its thread, and the next one gets another. The threads are daemons: none can keep a process
from ending.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

_Work = Callable[[], None]


class HandlerThreads:
    """Runs work, each piece in a thread of its own. The work must not raise."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._made = 0

    def run(self, work: _Work) -> None:
        """Begins with the work at once."""
        with self._lock:
            if self._idle:
                self._idle -= 1
                self._queue.put(work)
                return
            self._made += 1
            name = f"afl-handler-{self._made}"
        threading.Thread(target=self._live, args=(work,), name=name, daemon=True).start()

    def close(self) -> None:
        """Lets idle threads end; the others end with their work."""
        with self._lock:
            self._keep = 0
            for _ in range(self._idle):
                self._queue.put(None)
            self._idle = 0

    def _live(self, work: _Work | None) -> None:
        while work is not None:
            work()
            with self._lock:
                if self._idle >= self._keep:
                    return
                self._idle += 1
            work = self._queue.get()
