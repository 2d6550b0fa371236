"""Several processes fire the same schedules and are killed: each fire time is started once."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from afl.app.compiling import compile_program
from afl.kernel.port import Transaction
from afl.runtime.operations import Operations
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.schedule import (
    CatchUp,
    Firing,
    Outcome,
    Overlap,
    Schedule,
    Times,
    fire_key,
)
from afl.runtime.scheduling.times import between
from tests.runtime.kept import connect

ROOT = Path(__file__).parents[3]
FLOW = "namespace demo { workflow Tick(n: Int) => () andThen { sys.log(n = $.n) } }"
PROCESSES, SCHEDULES, TIMES_EACH = 3, 20, 50
FIRINGS = SCHEDULES * TIMES_EACH
PATIENCE_SECONDS = 240.0
SECOND = timedelta(seconds=1)


class Processes:
    """Schedulers, of which one can be killed; another one comes in its place."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._running = [self._start() for _ in range(PROCESSES)]
        self._chance = random.Random(7)
        self.killed = 0

    def _start(self) -> subprocess.Popen[bytes]:
        module = "tests.runtime.scheduling.firing_process"
        return subprocess.Popen([sys.executable, "-m", module, self._url], cwd=ROOT)

    def kill_one(self) -> None:
        place = self._chance.randrange(PROCESSES)
        self._end(self._running[place])
        self._running[place] = self._start()
        self.killed += 1

    def end(self) -> None:
        for process in self._running:
            self._end(process)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        assert process.poll() is None, "it has died by itself"
        process.kill()
        process.wait()


@contextmanager
def processes(url: str) -> Iterator[Processes]:
    running = Processes(url)
    try:
        yield running
    finally:
        running.end()


def schedules(store: PersistenceAPI) -> list[Schedule]:
    """Schedules that nobody was there for: each has as many fire times behind it."""
    now = store.now().replace(microsecond=0)
    start, end = now - TIMES_EACH * SECOND, now - SECOND
    made = [
        Schedule(
            f"s{number}",
            "demo.Tick",
            Times(every=SECOND, start=start, end=end),
            {"n": number},
            overlap=Overlap.ALLOW,
            catch_up=CatchUp.ALL,
            next_fire=start,
            look_at=start,
        )
        for number in range(SCHEDULES)
    ]

    def write(transaction: Transaction) -> None:
        for schedule in made:
            store.write_schedule(transaction, schedule)

    store.kernel.commit((), writes=write)
    return made


def firings_of(store: PersistenceAPI, made: list[Schedule]) -> list[Firing]:
    return [
        firing
        for schedule in made
        for firing in store.get_firings(schedule.name, limit=2 * TIMES_EACH)
    ]


@pytest.mark.timeout(300)
def test_each_fire_time_is_started_once_whoever_is_killed(server_url: str) -> None:
    with connect(server_url) as store:
        Operations(store).deploy(compile_program(FLOW))
        made = schedules(store)
        end = time.monotonic() + PATIENCE_SECONDS
        with processes(server_url) as running:
            next_kill = FIRINGS // 6
            while (fired := len(firings_of(store, made))) < FIRINGS:
                assert time.monotonic() < end, f"only {fired} were fired"
                if fired >= next_kill:
                    running.kill_one()
                    next_kill = fired + FIRINGS // 6
                time.sleep(0.05)
            assert running.killed >= 3
        expected = {
            fire_key(each.name, moment)
            for each in made
            for moment in between(each.times, each.next_fire or store.now(), store.now())
        }
        assert len(expected) == FIRINGS
        runs = store.find_runs(limit=2 * FIRINGS)
        firings = firings_of(store, made)
        tasks = store.kernel.find_tasks(limit=2 * FIRINGS)
    assert len(runs) == FIRINGS
    assert {run.key for run in runs} == expected
    assert {firing.outcome for firing in firings} == {Outcome.STARTED}
    assert {firing.run for firing in firings} == {task.id for task in tasks}
    assert {firing.run for firing in firings} == {run.id for run in runs}
