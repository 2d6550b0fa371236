"""The scheduler in a worker: it looks when something is due, when it is rung for, and every now and
then."""

from __future__ import annotations

from time import monotonic

from afl.kernel.doorbell import Doorbell
from afl.kernel.working.health import LoopHealth
from afl.kernel.working.loops import BackgroundLoop
from afl.runtime.scheduling.scheduler import Scheduler

#: What is rung when a schedule has changed.
BELL = "afl.schedules"
#: How long it is at most between two looks: another process's change may not have been rung for.
POLL_SECONDS = 5.0
_LISTEN_SECONDS = 0.25


class SchedulerLoop:
    """Fires what is due from `start` to `stop`."""

    def __init__(self, scheduler: Scheduler, doorbell: Doorbell) -> None:
        self._scheduler = scheduler
        self._doorbell = doorbell
        self._loop = BackgroundLoop("schedules", self._work)
        self._look_at = 0.0

    @property
    def health(self) -> LoopHealth:
        return self._loop.health

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()

    def _work(self) -> float:
        left = self._look_at - monotonic()
        if left > 0:
            seconds = min(left, _LISTEN_SECONDS)
            end = monotonic() + seconds
            if not self._doorbell.wait([BELL], seconds):
                # a doorbell that is closed does not wait
                return max(0.0, end - monotonic())
        seconds_left = self._scheduler.tick()
        wait = POLL_SECONDS if seconds_left is None else min(seconds_left, POLL_SECONDS)
        self._look_at = monotonic() + wait
        return 0.0
