"""Many schedules of flows in several processes, and what they came to together."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field

from afl.testing.flow_simulation import Plan, Result, run_schedule
from afl.testing.flow_simulation.actors import DEEDS
from afl.testing.flow_simulation.cases import SCHEDULES_PER_PROGRAM
from afl.testing.simulation.faults import TO_REQUESTS, Fault
from tests.sim.flows_mutants import MUTANTS, first_kill

CHUNK = 50
#: Within so many schedules a mutant must be found out.
MUTANT_SCHEDULES = 400
#: From so many schedules on, every kind of fault must have happened.
ENOUGH = 200
FAULTS = (*TO_REQUESTS, *DEEDS, Fault.NAMESAKE)
#: What must not be 0.
_TELLING = (
    "stale_writes_refused",
    "tasks_recovered",
    "effects_repeated",
    "outside_answers",
    "inline_answers",
    "answers_at_hand",
    "answers_unseen",
    "memories_lost",
)


@dataclass(slots=True)
class Totals:
    schedules: int = 0
    programs: set[int] = field(default_factory=set)
    failures: list[Result] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    cpu_seconds: float = 0.0

    def count(self, result: Result) -> None:
        self.schedules += 1
        self.programs.add(result.plan.seed // SCHEDULES_PER_PROGRAM)
        self.faults.update(entry.fault.value for entry in result.tape)
        self.counts.update(asdict(result.counts))
        self.steps += result.steps
        if result.rule is not None:
            self.failures.append(result)

    def add(self, other: Totals) -> None:
        self.schedules += other.schedules
        self.programs |= other.programs
        self.failures += other.failures
        self.faults.update(other.faults)
        self.counts.update(other.counts)
        self.steps += other.steps
        self.cpu_seconds += other.cpu_seconds

    def doubts(self) -> Iterator[str]:
        """Why a campaign without failures would prove nothing."""
        for count in _TELLING:
            if not self.counts[count]:
                yield f"{count} is 0"
        for fault in FAULTS:
            if not self.faults[fault.value]:
                yield f"there was no '{fault.value}'"
        if self.counts["tasks_given_up"] > self.schedules / 100:
            yield "too many runs were given up"


def run_chunk(first: int, end: int) -> Totals:
    """The schedules of a range of seeds, one after another."""
    totals = Totals()
    start = time.process_time()
    for seed in range(first, end):
        totals.count(run_schedule(Plan(seed)))
    totals.cpu_seconds = time.process_time() - start
    return totals


def run_mutant(name: str) -> tuple[int, str] | None:
    """How many schedules it took to find a mutant out, and which promise it broke."""
    (mutant,) = (mutant for mutant in MUTANTS if mutant.name == name)
    result = first_kill(mutant, MUTANT_SCHEDULES)
    return None if result is None else (result.plan.seed + 1, result.rule or "")


def pool_of(processes: int) -> ProcessPoolExecutor:
    # a schedule leaves little behind, and collecting it often costs a tenth of the time
    return ProcessPoolExecutor(processes, initializer=gc.set_threshold, initargs=(50_000, 20, 20))


def run(first: int, count: int, pool: ProcessPoolExecutor) -> Totals:
    totals = Totals()
    jobs = [
        pool.submit(run_chunk, start, min(start + CHUNK, first + count))
        for start in range(first, first + count, CHUNK)
    ]
    for job in jobs:
        totals.add(job.result())
    return totals
