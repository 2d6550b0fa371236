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

import psycopg
import pytest

from afl.app.compiling import compile_program
from afl.kernel.port import Transaction
from afl.runtime.operations import Operations
from afl.runtime.postgres_store import PostgresPersistence
from afl.runtime.schedule import CatchUp, Overlap, Schedule, Times, fire_key
from afl.runtime.scheduling.times import between

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


def schedules(store: PostgresPersistence) -> list[Schedule]:
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


def count_firings(connection: psycopg.Connection[tuple[int]]) -> int:
    row = connection.execute("select count(*) from afl.schedule_firing").fetchone()
    assert row is not None
    return row[0]


@pytest.mark.timeout(300)
def test_each_fire_time_is_started_once_whoever_is_killed(runs_url: str) -> None:
    with PostgresPersistence.connect(runs_url, max_size=2) as store:
        Operations(store).deploy(compile_program(FLOW))
        made = schedules(store)
        end = time.monotonic() + PATIENCE_SECONDS
        with (
            psycopg.connect(runs_url, autocommit=True) as watch,
            processes(runs_url) as running,
        ):
            next_kill = FIRINGS // 6
            while (fired := count_firings(watch)) < FIRINGS:
                assert time.monotonic() < end, f"only {fired} were fired"
                if fired >= next_kill:
                    running.kill_one()
                    next_kill = fired + FIRINGS // 6
                time.sleep(0.01)
            assert running.killed >= 3
        expected = {
            fire_key(each.name, moment)
            for each in made
            for moment in between(each.times, each.next_fire or store.now(), store.now())
        }
        assert len(expected) == FIRINGS
        with psycopg.connect(runs_url) as look:
            keys = [key for (key,) in look.execute("select key from afl.run")]
            firings = look.execute("select outcome, run from afl.schedule_firing").fetchall()
            tasks = look.execute("select id from afl.task").fetchall()
            runs = look.execute("select id from afl.run").fetchall()
    assert len(keys) == FIRINGS
    assert set(keys) == expected
    assert {outcome for outcome, _ in firings} == {"started"}
    assert {run for _, run in firings} == {id_ for (id_,) in tasks} == {id_ for (id_,) in runs}
