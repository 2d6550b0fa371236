"""The worker of an app: a `Worker` with its handlers."""

from __future__ import annotations

from datetime import timedelta
from types import TracebackType
from typing import Self

from afl.app.services import Services
from afl.runtime.ending import Asked, asked_by_signals
from afl.runtime.handler_table import HandlerTable
from afl.runtime.worker import Worker, WorkerConfig

DRAIN = LEASE = timedelta(seconds=30)
RENEWALS_PER_LEASE = 3


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
        """Serves until SIGTERM or SIGINT comes; a second one does not let handlers finish. Only
        the main thread can do this."""
        asked = Asked()
        with asked_by_signals(asked), self:
            asked.get()

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
