"""One claim in a turn worker's hands, as whoever works on it sees it.

It numbers the commits, asks again when the store's answer is lost, and tells what the worker has
heard meanwhile: that the task is lost, shall stop, or is to be handed back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from afl.kernel.errors import Fenced, StoreUnavailable
from afl.kernel.model import Claim, Commit, Committed, Continue
from afl.kernel.port import TaskQueue, Writes

T = TypeVar("T")
_FIRST_WAIT_SECONDS, _MAX_WAIT_SECONDS = 0.05, 2.0


class Left(Exception):
    """The claim is not worked on any more: it is lost, or the worker ends."""


class Grip:
    """Used in one event loop. What other threads know reaches it by `call_soon_threadsafe`."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        #: the number of the next commit
        self.number = 0
        #: the task is out of our hands: suspended, closed, or somebody else's
        self.is_over = False
        #: somebody has asked for the task to stop
        self.is_stopping = False
        #: the worker begins nothing new
        self.is_draining = False
        self._must_leave = False
        self._news = asyncio.Event()

    # What the worker tells

    def stop(self) -> None:
        """Somebody wants the task to stop."""
        self.is_stopping = True
        self._news.set()

    def drain(self) -> None:
        """What is under way may be finished; then the task is handed back."""
        self.is_draining = True

    def leave(self) -> None:
        """The worker ends now."""
        self.is_draining = self._must_leave = True
        self._news.set()

    def lose(self) -> None:
        """The task is somebody else's."""
        self.is_over = self._must_leave = True
        self._news.set()

    # What the work needs

    async def unless_called(self, work: Awaitable[T]) -> T | None:
        """What the work comes to; None if it was cancelled for the task's stop.

        Raises `Left` if it was cancelled because the task is not ours any more.
        """
        working = asyncio.ensure_future(work)
        calling = asyncio.ensure_future(self._news.wait())
        try:
            await asyncio.wait({working, calling}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
        finally:
            for each in (working, calling):
                if not each.done():
                    each.cancel()
            await asyncio.gather(working, calling, return_exceptions=True)
        self._news.clear()
        self.check()
        return None

    def check(self) -> None:
        """Raises `Left` if there is nothing to be done here any more."""
        if self._must_leave:
            raise Left

    async def commit(
        self, queue: TaskQueue, commit: Commit, writes: Writes | None = None
    ) -> Committed:
        """Commits under the next number; under the same one again if the answer is lost.

        Raises `Fenced`, what the kernel refuses, and what `writes` raises.
        """
        numbered = replace(commit, fence=self.claim.fence, number=self.number)
        try:
            (done,) = await self.patiently(
                lambda: asyncio.to_thread(queue.commit, [numbered], writes=writes)
            )
        except Fenced:
            self.is_over = True
            raise
        self.number += 1
        if not isinstance(commit.then, Continue):
            self.is_over = True
        return done

    async def patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Asks the store until it answers. Raises `Left` if that is of no use any more."""
        wait_seconds = _FIRST_WAIT_SECONDS
        while True:
            try:
                return await ask()
            except StoreUnavailable:
                self.check()
                await asyncio.sleep(wait_seconds)
                wait_seconds = min(wait_seconds * 2, _MAX_WAIT_SECONDS)
