"""Attempts that are made in turn: more than there are slots, by as many threads as have one.

A run may ask for a hundred pieces of quick work at once. They wait here, and each thread that is
through with one goes on with the next, without a word with the dispatcher in between.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock

from afl.kernel.model import Fence
from afl.kernel.working.hands import Held
from afl.runtime.handler_table import Handler

Attempt = tuple[Held, Handler]


class InTurn:
    """Makes attempts, as they came. Threads share it."""

    def __init__(
        self, run: Callable[[Callable[[], None]], None], make: Callable[[Held, Handler], None]
    ) -> None:
        """`run` gives work a thread of its own; `make` makes an attempt and must not raise."""
        self._run = run
        self._make = make
        self._lock = Lock()
        self._waiting: deque[Attempt] = deque()
        self._threads = 0
        #: attempts that are under way and have not been given up
        self._under_way: set[Fence] = set()

    def add(self, attempts: Sequence[Attempt], free_slots: int) -> None:
        """Has attempts made: with so many more threads, or by those that are at it."""
        with self._lock:
            self._waiting.extend(attempts)
            new = min(max(free_slots, 0 if self._threads else 1), len(attempts))
            self._threads += new
        for _ in range(new):
            self._run(self._go_through)

    def give_up(self, held: Held) -> None:
        """Waits no longer for an attempt: another thread goes on in its place."""
        with self._lock:
            if held.fence not in self._under_way:
                return
            self._under_way.remove(held.fence)
            if not self._waiting:
                self._threads -= 1
                return
        self._run(self._go_through)

    def clear(self) -> None:
        """Begins nothing more."""
        with self._lock:
            self._waiting.clear()

    def _go_through(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads -= 1
                    return
                held, handler = self._waiting.popleft()
                self._under_way.add(held.fence)
            self._make(held, handler)
            with self._lock:
                if held.fence not in self._under_way:
                    # it was given up, and somebody else has its place
                    return
                self._under_way.remove(held.fence)
