"""Threads that do one thing again and again, whatever happens to it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from afl.kernel.working.health import LoopHealth

_log = logging.getLogger("afl.worker")
#: How long a loop waits after a failure before it tries again.
AFTER_ERROR_SECONDS = 1.0


class BackgroundLoop:
    """Calls `work` until it is stopped. `work` answers how many seconds to wait before the next.

    A failure is counted, told to the log, and survived.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], float],
        *,
        after_error_seconds: float = AFTER_ERROR_SECONDS,
    ) -> None:
        self.health = LoopHealth(name)
        self._work = work
        self._after_error_seconds = after_error_seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"afl-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_seconds: float = 5.0) -> None:
        """Ends the loop and waits for what it is doing."""
        self._stopped.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout_seconds)

    @property
    def stopping(self) -> threading.Event:
        return self._stopped

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                wait_seconds = self._work()
                self.health.succeeded()
            except Exception as error:  # noqa: BLE001 - whatever it is, the loop outlives it
                self.health.failed(error)
                _log.warning("%s failed, and goes on", self.health.name, exc_info=True)
                wait_seconds = self._after_error_seconds
            self._stopped.wait(wait_seconds)
