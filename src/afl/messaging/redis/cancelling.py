"""Cancellations that the client swallows are raised after all.

On Python 3.11 `asyncio.wait_for`, which the client uses, forgets a cancellation that comes while
its work is just being done, or fails. Whoever waits in a loop would then wait for ever.
"""

from __future__ import annotations

import asyncio


class Heeded:
    """What is awaited inside ends with `CancelledError` if it was cancelled and went on, or raised
    something else instead."""

    __slots__ = ("_before", "_task")

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        # a task may have been cancelled before, and clean up now
        self._before = self._task.cancelling() if self._task else 0

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        went_on = kind is None or issubclass(kind, Exception)
        if went_on and self._task and self._task.cancelling() > self._before:
            raise asyncio.CancelledError
