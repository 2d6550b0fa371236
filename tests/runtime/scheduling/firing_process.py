"""A process that fires schedules until it is killed: `python -m ... URL`."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from datetime import timedelta

from afl.base.system import SystemIds
from afl.kernel.errors import StoreUnavailable
from afl.runtime.programs import Plans
from afl.runtime.scheduling.scheduler import Scheduler
from afl.runtime.submitting import Submitter
from tests.runtime.kept import connect

#: So short that processes take schedules away from each other, and wait little for a dead one.
HOLD = timedelta(milliseconds=700)


def main(url: str) -> None:
    with connect(url) as persistence:
        submitter = Submitter(persistence, Plans(persistence), SystemIds())
        scheduler = Scheduler(persistence, submitter, hold=HOLD)
        while True:
            # a schedule that a dead process had in hand can be out of reach for a while
            with suppress(StoreUnavailable):
                wait_seconds = scheduler.tick()
                time.sleep(0.05 if wait_seconds is None else min(wait_seconds, 0.05))


if __name__ == "__main__":
    main(sys.argv[1])
