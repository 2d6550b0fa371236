"""How a process that serves hears that it is to end."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import FrameType
from typing import Any

#: Where somebody puts a word when the process is to end; the one that serves waits for it.
Asked = SimpleQueue[int]

_Handler = Callable[[int, FrameType | None], Any] | int | None


@contextmanager
def asked_by_signals(asked: Asked) -> Iterator[None]:
    """Puts SIGTERM or SIGINT into the queue. Only the first: the next ends the process, as always.

    Only the main thread can do this.
    """
    # an Event could not be set here: its lock may be held by the very code that was interrupted
    before: dict[int, _Handler] = {}

    def tell(number: int, _frame: FrameType | None) -> None:
        restore()
        asked.put(number)

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in (signal.SIGTERM, signal.SIGINT):
        before[number] = signal.signal(number, tell)
    try:
        yield
    finally:
        restore()
