"""What the suite must be given to judge a coordinator."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from afl.messaging.coordinator import MessageCoordinator, MessageMetrics

_T = TypeVar("_T")


class ClientDied(Exception):
    """The process of a coordinator is dead. No coordinator may catch this."""


class Harness(Protocol):
    """Empty mailboxes, and what only their own kind can do."""

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Does it on the harness's own loop, on which its coordinators live."""
        ...

    def coordinator(self, metrics: MessageMetrics | None = None) -> MessageCoordinator:
        """A new one on the same mailboxes, as another process would have."""
        ...

    def advance(self, seconds: float) -> None:
        """Lets time pass for the mailboxes, at once."""
        ...

    def lose_answer(self, coordinator: MessageCoordinator) -> None:
        """The store does the next thing that this coordinator asks for, but its answer is lost, as
        if the connection broke. Does nothing where answers cannot be lost."""
        ...

    def die_after(self, coordinator: MessageCoordinator, commands: int) -> None:
        """The coordinator's process dies when the store has done so many more commands: from then
        on everything raises `ClientDied`. Does nothing where no process can die."""
        ...

    def close(self) -> None:
        """Closes the coordinators and removes the mailboxes."""
        ...


class LoopHarness:
    """The part of a harness that is the same for all: a loop, and coordinators to be closed."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._made: list[MessageCoordinator] = []

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return self._runner.run(work)

    def keep(self, coordinator: MessageCoordinator) -> MessageCoordinator:
        """Remembers it, to be closed at the end."""
        self._made.append(coordinator)
        return coordinator

    def close(self) -> None:
        for coordinator in self._made:
            self.run(coordinator.close())
        self._runner.close()
