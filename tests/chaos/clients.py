"""What goes on around the workers, each in a thread: work is submitted, time is swept, closed
events are read. None of them knows of the faults; they only try again when the store is away."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Self, TypeVar

from afl.kernel.errors import StoreUnavailable
from afl.kernel.model import TaskId
from afl.kernel.port import Store
from tests.chaos.workload import ROOT, root_spec

T = TypeVar("T")
_BATCH = 20
#: how many roots may be open before the next batch waits
_MAX_OPEN = 200
_PAGE = 500
_SWEEP_SECONDS = 0.4
_READ_SECONDS = 0.1
_AWAY_SECONDS = 0.1


class Clients:
    """Threads that share a store."""

    def __init__(self, store: Store, roots: int, submit_seconds: float) -> None:
        self._store = store
        self._roots = roots
        self._pace = submit_seconds / (roots / _BATCH)
        self._end = threading.Event()
        self.submitted: dict[int, TaskId] = {}
        self.closed_events: Counter[TaskId] = Counter()
        self.closed_roots = 0
        self.errors: list[str] = []
        loops = (self._submit, self._sweep, self._sweep, self._read)
        self._threads = [threading.Thread(target=self._guard, args=(loop,)) for loop in loops]

    @property
    def finished(self) -> bool:
        return self.closed_roots >= self._roots

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    def _submit(self) -> None:
        for first in range(0, self._roots, _BATCH):
            numbers = range(first, min(first + _BATCH, self._roots))
            specs = [root_spec(number) for number in numbers]
            # every third batch is sent twice, as by somebody who lost the answer
            for _ in range(1 + (first // _BATCH % 3 == 0)):
                tasks = self._again(lambda specs=specs: self._store.enqueue(specs))  # type: ignore[misc]
                for number, task in zip(numbers, tasks, strict=True):
                    if self.submitted.setdefault(number, task.id) != task.id:
                        self.errors.append(f"root {number} became two tasks")
            if self._end.wait(self._pace):
                return
            while first + _BATCH - self.closed_roots > _MAX_OPEN:
                if self._end.wait(_READ_SECONDS):
                    return

    def _sweep(self) -> None:
        while not self._end.wait(_SWEEP_SECONDS):
            self._again(self._store.sweep)

    def _read(self) -> None:
        last = 0
        while not self._end.is_set():
            after = last
            entries = self._again(lambda: self._store.read_outbox(after, _PAGE))  # noqa: B023
            for entry in entries:
                last = entry.id
                if entry.topic == "closed":
                    self.closed_events[entry.task] += 1
                    body = entry.body
                    self.closed_roots += isinstance(body, dict) and body["name"] == ROOT
            if not entries:
                self._end.wait(_READ_SECONDS)

    def _again(self, act: Callable[[], T]) -> T:
        while True:
            try:
                return act()
            except StoreUnavailable:
                if self._end.wait(_AWAY_SECONDS):
                    raise

    def _guard(self, loop: Callable[[], None]) -> None:
        try:
            loop()
        except Exception as error:  # noqa: BLE001 - a thread that ends unseen would look like success
            self.errors.append(f"{loop.__name__} ended: {error!r}")
