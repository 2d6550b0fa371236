"""Many schedules in several processes, and what they came to together."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field

from afl.testing.simulation import Plan, Result, run_schedule
from afl.testing.simulation.faults import Fault
from tests.sim.mutants import MUTANTS, Mutant, first_kill

CHUNK = 50
#: Within so many schedules a mutant must be found out.
MUTANT_SCHEDULES = 400
#: From so many schedules on, every kind of fault must have happened.
ENOUGH = 200
#: What must not be 0.
_TELLING = (
    "stale_writes_refused",
    "tasks_recovered",
    "tasks_given_up",
    "strays_told",
    "deadlines_moved",
    "timeouts",
)


@dataclass(slots=True)
class Totals:
    schedules: int = 0
    failures: list[Result] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    roots: int = 0
    as_expected: int = 0
    steps: int = 0
    cpu_seconds: float = 0.0

    def count(self, result: Result) -> None:
        self.schedules += 1
        self.faults.update(entry.fault.value for entry in result.tape)
        self.counts.update(asdict(result.counts))
        self.roots += result.roots
        self.as_expected += result.as_expected
        self.steps += result.steps
        if result.rule is not None:
            self.failures.append(result)

    def add(self, other: Totals) -> None:
        self.schedules += other.schedules
        self.failures += other.failures
        self.faults.update(other.faults)
        self.counts.update(other.counts)
        self.roots += other.roots
        self.as_expected += other.as_expected
        self.steps += other.steps
        self.cpu_seconds += other.cpu_seconds

    def doubts(self) -> Iterator[str]:
        """Why a campaign without failures would prove nothing."""
        for count in _TELLING:
            if not self.counts[count]:
                yield f"{count} is 0"
        for fault in Fault:
            if not self.faults[fault.value]:
                yield f"there was no '{fault.value}'"
        if self.as_expected < self.roots / 2:
            yield "fewer than half of the roots came to what they come to without faults"


def run_chunk(first: int, end: int) -> Totals:
    """The schedules of a range of seeds, one after another."""
    totals = Totals()
    start = time.process_time()
    for seed in range(first, end):
        totals.count(run_schedule(Plan(seed)))
    totals.cpu_seconds = time.process_time() - start
    return totals


def try_mutant(mutant: Mutant) -> tuple[int, str] | None:
    """How many schedules it took to find a mutant out, and which promise it broke."""
    result = first_kill(mutant, MUTANT_SCHEDULES)
    return None if result is None else (result.plan.seed + 1, result.rule or "")


def run_mutant(number: int) -> tuple[int, str] | None:
    return try_mutant(MUTANTS[number])


def run(first: int, count: int, pool: ProcessPoolExecutor) -> Totals:
    totals = Totals()
    jobs = [
        pool.submit(run_chunk, start, min(start + CHUNK, first + count))
        for start in range(first, first + count, CHUNK)
    ]
    for job in jobs:
        totals.add(job.result())
    return totals
