"""The product's workers as processes, and what is done to them: one is killed every second, and now
and then one is stopped past its lease, so that it comes back with work that is not its any more."""

from __future__ import annotations

import random
import subprocess
import sys
import time

from tests.chaos.fleet import LEASE_SECONDS, Fleet, Member
from tests.chaos.sink import REPOSITORY

SLOTS = 4
_KILL_SECONDS = 1.0
#: by then somebody has found the lease to be over, and given the work to another
_SWEEP_SECONDS = 1.5


class FlowFleet(Fleet):
    """A number of workers that are always replaced."""

    def _start(self) -> Member:
        # a name for each process: what a dead one held is for the sweep, not for its heir
        self._started += 1
        name = f"worker-{self._started:04}"
        log = self._logs / f"{name}.jsonl"
        more = (str(self._sink_port), str(log), str(LEASE_SECONDS), str(SLOTS))
        with self._errors(name).open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.flow_worker", self._url, name, *more],
                stdin=subprocess.DEVNULL,
                stderr=errors,
                cwd=REPOSITORY,
                start_new_session=True,
            )
        return Member(name, process)


class FlowInjector:
    """Decides what happens when, by a seed."""

    def __init__(self, fleet: FlowFleet, seed: int) -> None:
        self._fleet = fleet
        self._random = random.Random(seed)
        self.kills = 0
        self.stops = 0
        now = time.monotonic()
        # the first faults come when there is something to break
        self._next_kill, self._next_stop = now + 2.5, now + 2.0

    def tick(self) -> None:
        now = time.monotonic()
        if now >= self._next_kill:
            self._next_kill = now + _KILL_SECONDS
            # one that is stopped is to come back with what it has lost
            awake = [member for member in self._fleet.members if member.until is None]
            self._fleet.kill(self._random.choice(awake))
            self.kills += 1
        if now >= self._next_stop:
            self._next_stop = now + self._random.uniform(0.8, 1.6)
            self._stop_one()

    def _stop_one(self) -> None:
        awake = [member for member in self._fleet.members if member.until is None]
        # somebody has to do the work
        if len(awake) > len(self._fleet.members) // 2:
            seconds = LEASE_SECONDS + _SWEEP_SECONDS + self._random.uniform(0.0, 1.0)
            self._fleet.stop(self._random.choice(awake), seconds)
            self.stops += 1
