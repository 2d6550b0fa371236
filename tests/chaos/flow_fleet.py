"""The product's workers as processes, and what is done to them: one is killed every second, and now
and then one is stopped past its lease in the middle of a step, so that it comes back with work that
is not its any more."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from tests.chaos.fleet import LEASE_SECONDS, Fleet, Member
from tests.chaos.sink import REPOSITORY, Sink

SLOTS = 4
_KILL_SECONDS = 1.0
#: by then somebody has found the lease to be over, and given the work to another, if anybody does
_STOP_SECONDS = LEASE_SECONDS + 10.0
#: so long one that was woken may say what it has done, also while a database changes its server
LAST_WORD_SECONDS = 2.0


class FlowFleet(Fleet):
    """A number of workers that are always replaced."""

    @property
    def at_work(self) -> list[Member]:
        """Those that have committed something and are not stopped: on a slow machine there may be
        others that are only starting."""
        return [
            member
            for member in self.members
            if member.until is None and self._log(member.name).stat().st_size
        ]

    def _log(self, name: str) -> Path:
        return self._logs / f"{name}.jsonl"

    def _start(self) -> Member:
        # a name for each process: what a dead one held is for the sweep, not for its heir
        self._started += 1
        name = f"worker-{self._started:04}"
        log = self._log(name)
        log.touch()
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

    def __init__(self, fleet: FlowFleet, sink: Sink, seed: int) -> None:
        self._fleet, self._sink = fleet, sink
        self._random = random.Random(seed)
        self.kills = 0
        self.stops = 0
        now = time.monotonic()
        # the first faults come when there is something to break
        self._next_kill, self._next_stop = now + 2.5, now + 2.0

    def tick(self) -> None:
        now = time.monotonic()
        at_work = self._fleet.at_work
        # somebody has to do the work, and to find what others have left
        is_enough = len(at_work) > 1
        if now >= self._next_kill and is_enough:
            self._next_kill = now + _KILL_SECONDS
            self._kill_one(at_work, now)
        if now >= self._next_stop and is_enough:
            self._next_stop = now + self._random.uniform(0.8, 1.6)
            self._sink.catch()
        self._hear()

    def rest(self) -> None:
        """Nothing new happens, and nobody is kept waiting. Those that are stopped stay so until
        their work is another's."""
        self._sink.release()
        self._hear()

    def _kill_one(self, at_work: list[Member], now: float) -> None:
        # one that was stopped has to come back with what it has lost
        others = [m for m in at_work if now - (m.woken_at or 0.0) > LAST_WORD_SECONDS]
        if others:
            self._fleet.kill(self._random.choice(others))
            self.kills += 1

    def _hear(self) -> None:
        for event, name in self._sink.heard():
            # it may have been killed meanwhile
            for member in [m for m in self._fleet.members if m.name == name]:
                if event == "taken":
                    self._fleet.wake(member)
                elif member in self._fleet.at_work:
                    self._fleet.stop(member, _STOP_SECONDS)
                    self.stops += 1
            self._sink.release()
