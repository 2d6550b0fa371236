"""Workers as processes, and what is done to them: killed, stopped past their lease, woken again."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.sink import REPOSITORY

LEASE_SECONDS = 2.0
SLOTS = 6


@dataclass(slots=True)
class Member:
    name: str
    process: subprocess.Popen[bytes]
    #: stopped until then
    until: float | None = None
    woken_at: float | None = None


class Fleet:
    """A number of workers that are always replaced."""

    def __init__(self, size: int, url: str, sink_port: int, logs: Path) -> None:
        self._url, self._sink_port, self._logs = url, sink_port, logs
        self._started = 0
        #: what workers that ended by themselves had to say
        self.surprises: list[str] = []
        self.members = [self._start() for _ in range(size)]

    def kill(self, member: Member) -> None:
        member.process.kill()
        self._replace(member)

    def stop(self, member: Member, seconds: float) -> None:
        member.process.send_signal(signal.SIGSTOP)
        member.until = time.monotonic() + seconds

    def wake(self, member: Member) -> None:
        member.process.send_signal(signal.SIGCONT)
        member.until, member.woken_at = None, time.monotonic()

    def tend(self) -> None:
        """Wake those whose time has come; replace those that ended, which they should not."""
        for member in list(self.members):
            if member.until is not None and time.monotonic() >= member.until:
                self.wake(member)
            elif member.process.poll() is not None:
                self.surprises.append(f"{member.name} ended: {self._last_words(member)}")
                self._replace(member)

    @property
    def somebody_is_stopped(self) -> bool:
        return any(member.until is not None for member in self.members)

    def wake_all(self) -> None:
        for member in self.members:
            if member.until is not None:
                self.wake(member)

    def close(self) -> None:
        for member in self.members:
            member.process.kill()
        for member in self.members:
            member.process.wait()

    def _replace(self, member: Member) -> None:
        member.process.wait()
        self.members[self.members.index(member)] = self._start()

    def _start(self) -> Member:
        # a name for each process: what a dead one held is for the sweep, not for its heir
        self._started += 1
        name = f"worker-{self._started:04}"
        log = self._logs / f"{name}.jsonl"
        more = (str(self._sink_port), str(log), str(LEASE_SECONDS), str(SLOTS))
        with self._errors(name).open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.worker", self._url, name, *more],
                stdin=subprocess.DEVNULL,
                stderr=errors,
                cwd=REPOSITORY,
                start_new_session=True,
            )
        return Member(name, process)

    def _last_words(self, member: Member) -> str:
        return self._errors(member.name).read_text(encoding="utf-8", errors="replace")[-1500:]

    def _errors(self, name: str) -> Path:
        return self._logs / f"{name}.err"


@dataclass(slots=True)
class Faults:
    """What was done."""

    kills: int = 0
    stops: int = 0
    restarts: int = 0


class Injector:
    """Decides what happens when, by a seed."""

    def __init__(
        self, fleet: Fleet, crash_server: Callable[[], None], seed: int, seconds: float
    ) -> None:
        self._fleet, self._crash_server = fleet, crash_server
        self._random = random.Random(seed)
        self.done = Faults()
        now = time.monotonic()
        # the first faults come when there is something to break
        self._next_kill, self._next_stop = now + 2.0, now + 1.5
        self._crash_at = now + seconds / 4

    def tick(self) -> None:
        now = time.monotonic()
        if now >= self._next_kill:
            self._next_kill = now + self._random.uniform(1.0, 2.0)
            self._fleet.kill(self._random.choice(self._fleet.members))
            self.done.kills += 1
        if now >= self._next_stop:
            self._next_stop = now + self._random.uniform(0.7, 1.7)
            self._stop_one()
        if not self.done.restarts and now >= self._crash_at:
            self._crash_server()
            self.done.restarts += 1

    def _stop_one(self) -> None:
        awake = [member for member in self._fleet.members if member.until is None]
        # somebody has to do the work
        if len(awake) > len(self._fleet.members) // 2:
            seconds = LEASE_SECONDS + self._random.uniform(0.5, 1.2)
            self._fleet.stop(self._random.choice(awake), seconds)
            self.done.stops += 1
