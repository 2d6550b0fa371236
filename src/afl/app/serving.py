"""The worker of an app: a `Worker` with its handlers."""

from __future__ import annotations

import signal
import threading
from datetime import timedelta
from types import FrameType, TracebackType
from typing import Self

from afl.app.services import Services
from afl.runtime.handler_table import HandlerTable
from afl.runtime.worker import Worker, WorkerConfig

DRAIN = timedelta(seconds=30)


class AppWorker:
    """Serves from `start` to `stop`."""

    def __init__(self, services: Services, table: HandlerTable, config: WorkerConfig) -> None:
        self.worker = Worker(services.evaluator, table, config, doorbell=services.doorbell)

    def start(self) -> None:
        """Makes the worker known and starts to serve."""
        self.worker.start()

    def stop(self, timeout: timedelta = DRAIN) -> bool:
        """Claims nothing more and lets handlers finish; tells whether all did in that time."""
        return self.worker.drain(timeout.total_seconds())

    def serve(self) -> None:
        """Serves until SIGTERM or SIGINT comes. Only the main thread can do this."""
        asked = threading.Event()

        def ask(number: int, frame: FrameType | None) -> None:
            asked.set()

        before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            with self:
                asked.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
