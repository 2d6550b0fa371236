"""A process that fires schedules until it is killed: `python -m ... URL`."""

from __future__ import annotations

import sys
import time
from datetime import timedelta

from afl.base.system import SystemIds
from afl.runtime.postgres_store import PostgresPersistence
from afl.runtime.programs import Plans
from afl.runtime.scheduling.scheduler import Scheduler
from afl.runtime.submitting import Submitter

#: So short that processes take schedules away from each other, and wait little for a dead one.
HOLD = timedelta(milliseconds=700)


def main(url: str) -> None:
    with PostgresPersistence.connect(url, max_size=2) as persistence:
        submitter = Submitter(persistence, Plans(persistence), SystemIds())
        scheduler = Scheduler(persistence, submitter, hold=HOLD)
        while True:
            wait_seconds = scheduler.tick()
            time.sleep(0.05 if wait_seconds is None else min(wait_seconds, 0.05))


if __name__ == "__main__":
    main(sys.argv[1])
