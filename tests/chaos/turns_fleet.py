"""Turn workers and tool workers as processes; one of them is killed every second, and replaced."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from tests.chaos.fleet import LEASE_SECONDS, Fleet, Member
from tests.chaos.sink import REPOSITORY

_KILL_SECONDS = 1.0


class TurnFleet(Fleet):
    """So many workers of each role, always."""

    def __init__(self, roles: dict[str, int], url: str, sink_port: int, logs: Path) -> None:
        self._wanted = [role for role, count in roles.items() for _ in range(count)]
        super().__init__(len(self._wanted), url, sink_port, logs)

    def _replace(self, member: Member) -> None:
        self._wanted.append(member.name.partition("-")[0])
        super()._replace(member)

    def _start(self) -> Member:
        # a name for each process: what a dead one held is for the sweep, not for its heir
        self._started += 1
        name = f"{self._wanted.pop(0)}-{self._started:04}"
        more = (str(self._sink_port), str(LEASE_SECONDS))
        with self._errors(name).open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.turns_worker", self._url, name, *more],
                stdin=subprocess.DEVNULL,
                stderr=errors,
                cwd=REPOSITORY,
                start_new_session=True,
            )
        return Member(name, process)


class TurnInjector:
    """Decides who is killed, by a seed."""

    def __init__(self, fleet: TurnFleet, seed: int) -> None:
        self._fleet = fleet
        self._random = random.Random(seed)
        self.kills = 0
        # the first fault comes when there is something to break
        self._next_kill = time.monotonic() + 2.5

    def tick(self) -> None:
        now = time.monotonic()
        if now >= self._next_kill:
            self._next_kill = now + _KILL_SECONDS
            self._fleet.kill(self._random.choice(self._fleet.members))
            self.kills += 1
