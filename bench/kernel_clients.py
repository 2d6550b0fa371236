"""Clients in processes that stay for the whole run, for the sides that are written in Python."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Self

#: Time to connect and to compile functions, which each connection does for itself.
_CONNECTING_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Load:
    """What one process has to do: so many clients, from one time to another."""

    url: str
    clients: int
    batch: int
    start: float
    end: float

    def share(self, client: Callable[[], int]) -> int:
        """Runs the clients in threads; answers how many tasks they closed in the time."""
        with ThreadPoolExecutor(self.clients) as threads:
            return sum(threads.map(lambda _: client(), range(self.clients)))

    def count(self, step: Callable[[], int]) -> int:
        """Repeats a step that closes tasks; answers how many it closed in the time."""
        closed = 0
        while True:
            done = step()
            now = time.time()
            if now >= self.end:
                return closed
            if now >= self.start:
                closed += done


class Clients:
    """Processes that do loads."""

    def __init__(self) -> None:
        # more processes than cores: while one waits for the database, another has work for it
        self._processes = 2 * (os.cpu_count() or 1)
        spawn = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(self._processes, mp_context=spawn)

    def __enter__(self) -> Self:
        # so that the first measurement does not wait for Python to start
        list(self._pool.map(time.sleep, [0.2] * self._processes))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def tasks_per_second(
        self,
        drive: Callable[[Load], int],
        url: str,
        clients: int,
        batch: int,
        warm_up: int,
        seconds: int,
    ) -> float:
        """One measurement, after a warm-up of at least some connections."""
        start = time.time() + warm_up + _CONNECTING_SECONDS
        used = min(clients, self._processes)
        loads = [
            Load(url, clients // used + (number < clients % used), batch, start, start + seconds)
            for number in range(used)
        ]
        return sum(self._pool.map(drive, loads)) / seconds
