"""What the machine needs of a store, within one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from afl.kernel.model import (
    Call,
    CallId,
    Card,
    CardHash,
    Fence,
    Json,
    Loss,
    RunId,
    Task,
    TaskId,
    Worker,
    WorkerId,
)


class Rows(Protocol):
    """The rows of an open transaction: what was put is there when it is looked up."""

    @property
    def now(self) -> datetime:
        """The time of the transaction."""
        ...

    # Reading

    def task(self, task: TaskId) -> Task:
        """A task that there is."""
        ...

    def find_task(self, task: TaskId) -> Task | None: ...
    def call(self, call: CallId) -> Call:
        """A call that there is."""
        ...

    def find_call(self, call: CallId) -> Call | None: ...
    def calls_under(self, caller: TaskId, keys: Sequence[str]) -> dict[str, CallId]:
        """The calls of a task by these of their keys."""
        ...

    def find_worker(self, worker: WorkerId) -> Worker | None: ...
    def held_by_fence(self, fence: Fence) -> Task | None:
        """The task that runs under this fence."""
        ...

    def committed_by_fence(self, fence: Fence) -> Task | None:
        """The task that was last committed under this fence."""
        ...

    def taken(self, worker: WorkerId, token: str) -> list[Task]:
        """What a worker took with a token and still holds, in any order."""
        ...

    def caller_of(self, task: Task) -> Task | None: ...
    def open_count(self, task: TaskId) -> int:
        """How many calls of a task are open."""
        ...

    def untaken_count(self, task: TaskId) -> int:
        """How many answers there are that a task has not taken in."""
        ...

    def first_open(self, task: TaskId) -> Call | None:
        """The open call of a task with the first deadline."""
        ...

    def replies_of(self, task: TaskId) -> list[Call]:
        """Answers that a task has not taken in, oldest first."""
        ...

    def is_wanted(self, tenant: str, lane: str) -> bool:
        """Whether anybody holds a lane or queues for it."""
        ...

    def holder(self, tenant: str, lane: str) -> TaskId | None:
        """Who holds a lane."""
        ...

    def first_queued(self, tenant: str, lane: str) -> Task | None:
        """Who gets a lane next: by priority, then id."""
        ...

    # Writing

    def next_fence(self) -> Fence:
        """A fence greater than all before, used or not. # I9"""
        ...

    def put_task(self, task: Task) -> Task: ...
    def put_call(self, call: Call) -> Call: ...
    def put_card(self, card: Card) -> None:
        """Keeps a card, if it is new."""
        ...

    def extend_box(self, box: str, hashes: list[CardHash]) -> None:
        """Appends to a box."""
        ...

    def put_worker(self, worker: Worker) -> None: ...
    def add_loss(self, loss: Loss) -> None: ...
    def append_outbox(self, topic: str, task: TaskId, run: RunId, body: Json) -> None: ...
