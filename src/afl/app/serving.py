"""The worker of an app: a `Worker` with its handlers, and the delivery of events beside it."""

from __future__ import annotations

import signal
import threading
from datetime import timedelta
from types import FrameType, TracebackType
from typing import Self

from afl.app.services import Services
from afl.runtime.handler_table import HandlerTable
from afl.runtime.worker import Worker, WorkerConfig
from afl.runtime.working.loops import BackgroundLoop

#: How often a wait that began after its event is looked for.
_DELIVERY_SECONDS = 0.5
DRAIN = timedelta(seconds=30)


class AppWorker:
    """Serves from `start` to `stop`."""

    def __init__(self, services: Services, table: HandlerTable, config: WorkerConfig) -> None:
        self._services = services
        self.worker = Worker(services.evaluator, table, config, doorbell=services.doorbell)
        self._events = BackgroundLoop("events", self._deliver)

    def start(self) -> None:
        """Makes the worker known and starts to serve."""
        self.worker.start()
        self._events.start()

    def stop(self, timeout: timedelta = DRAIN) -> bool:
        """Claims nothing more and lets handlers finish; tells whether all did in that time."""
        self._events.stop()
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

    def _deliver(self) -> float:
        if self._services.operations.deliver_events():
            self._services.doorbell.ring(self.worker.config.lists)
        return _DELIVERY_SECONDS

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
