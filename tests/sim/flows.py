"""Simulates flows under faults.

python -m tests.sim.flows --schedules 10000       many schedules, then the mutants
python -m tests.sim.flows --seed 17               one schedule, step by step
python -m tests.sim.flows --seed 15 --mutant "no fence" --shrink
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path

from afl.testing.flow_simulation import FlowSimulation, Plan, Result, run_schedule, shrink
from tests.sim.flows_campaign import ENOUGH, Totals, pool_of, run, run_mutant
from tests.sim.flows_mutants import MUTANTS

SHOWN = 3


def replay_command(result: Result) -> str:
    """The command that plays this schedule again; a program of its own has to be saved first."""
    parts = ["python -m tests.sim.flows --seed", str(result.plan.seed)]
    if result.plan.only is not None:
        parts.append(f'--only "{" ".join(entry.id for entry in result.tape)}"')
    if result.plan.text is not None:
        parts.append("--program program.afl")
    return " ".join(parts)


def describe(result: Result) -> str:
    """A failing schedule, for people."""
    lines = [
        f"seed {result.plan.seed}: {result.failure}",
        result.plan.program,
        f"  {result.steps} steps, {result.seconds:.0f} s of virtual time, "
        f"{len(result.tape)} faults:",
        *(f"  {entry}" for entry in result.tape),
        f"  {replay_command(result)}",
    ]
    return "\n".join(lines)


def replay(options: argparse.Namespace) -> int:
    """Plays one schedule and tells every step; with --shrink, first finds a smaller one."""
    mutants = {mutant.name: mutant for mutant in MUTANTS}
    plan = Plan(
        options.seed,
        None if options.only is None else frozenset(options.only.split()),
        None if options.program is None else options.program.read_text(),
    )
    mutant = mutants.get(options.mutant)
    with nullcontext(FlowSimulation) if mutant is None else mutant.simulation() as simulation:
        result = run_schedule(plan, simulation, None if options.shrink else print)
        if options.shrink and result.rule is not None:
            result = shrink(result, lambda smaller: run_schedule(smaller, simulation))
            result = run_schedule(result.plan, simulation, print)
    print()
    print(f"seed {plan.seed}: all promises kept" if result.rule is None else describe(result))
    return int(result.rule is not None)


def table(title: str, rows: Mapping[str, object]) -> None:
    print(title)
    for name, value in rows.items():
        print(f"  {name.replace('_', ' '):<40}{value!s:>12}")
    print()


def campaign(options: argparse.Namespace) -> int:
    mutants = [m for m in MUTANTS if options.mutant in (None, m.name)]
    with pool_of(options.processes) as pool:
        start = time.perf_counter()
        totals = run(options.first, options.schedules, pool)
        seconds = time.perf_counter() - start
        kills = list(pool.map(run_mutant, [mutant.name for mutant in mutants]))
    for result in totals.failures[:SHOWN]:
        print(describe(shrink(result, run_schedule)), end="\n\n")
    doubts = list(totals.doubts()) if totals.schedules >= ENOUGH else []
    for doubt in doubts:
        print(f"This run proves nothing: {doubt}.")
    found = dict(zip((mutant.name for mutant in mutants), kills, strict=True))
    print(json.dumps(report(totals, seconds, found)))
    return int(bool(totals.failures or doubts or None in kills))


def report(
    totals: Totals, seconds: float, kills: Mapping[str, tuple[int, str] | None]
) -> dict[str, object]:
    """Prints the tables; answers the figures."""
    table("faults", dict(sorted(totals.faults.items())))
    table("seen by the judge", totals.counts)
    print("mutants, with the schedules it took to find each out and the promise it broke")
    for name, kill in kills.items():
        print(f"  {name:<40}", "survived" if kill is None else f"{kill[0]:>4}  {kill[1]}")
    print()
    figures: dict[str, object] = {
        "schedules": totals.schedules,
        "failures": len(totals.failures),
        "programs": len(totals.programs),
        "schedules_per_second": round(totals.schedules / seconds, 1),
        "mutants_killed": sum(kill is not None for kill in kills.values()),
        "mutants": len(kills),
        "seconds": round(seconds, 1),
        "schedules_per_core_second": round(totals.schedules / max(totals.cpu_seconds, 1e-9), 1),
        "steps": totals.steps,
        "faults_injected": sum(totals.faults.values()),
    }
    table("schedules", figures)
    return {**figures, "faults": dict(sorted(totals.faults.items())), **totals.counts}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.sim.flows", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--schedules", type=int, default=10_000, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, help="play this one schedule and tell every step")
    parser.add_argument("--only", help="with --seed: the only faults that may happen, by id")
    parser.add_argument("--program", type=Path, help="with --seed: a file with the program to play")
    parser.add_argument("--mutant", choices=[m.name for m in MUTANTS], help="this one alone")
    parser.add_argument("--shrink", action="store_true", help="with --seed: make it smaller first")
    options = parser.parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = campaign if options.seed is None else replay
    return command(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
