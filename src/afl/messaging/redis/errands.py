"""What a caller wants that does not wait: done soon, in order, and before anything else it does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from afl.messaging.errors import MessageCoordinatorError

Errand = Callable[[], Awaitable[object]]


class Errands:
    """Those of one coordinator."""

    def __init__(self) -> None:
        self._open: list[Errand] = []
        self._lock = asyncio.Lock()
        self._background: set[asyncio.Task[None]] = set()

    def __bool__(self) -> bool:
        return bool(self._open)

    def add(self, errand: Errand) -> None:
        """Begins at once if a loop runs; else whoever settles them does it."""
        self._open.append(errand)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        task = loop.create_task(self._settle_quietly())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def settle(self) -> None:
        """Does all that are open; one that fails stays open, and so do those behind it."""
        async with self._lock:
            while self._open:
                await self._open[0]()
                del self._open[0]

    async def close(self) -> None:
        await asyncio.gather(*self._background, return_exceptions=True)

    async def _settle_quietly(self) -> None:
        try:
            await self.settle()
        except MessageCoordinatorError:
            return  # the next operation tries again, and says so
