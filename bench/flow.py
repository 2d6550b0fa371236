"""How fast flows run, beside other durable engines and PostgreSQL itself: `python -m bench.flow`.

Flows of 10 steps in a row and of 100 steps at once, whose steps do nothing, on one machine, in one
run, in turns: on this runtime with one and with two worker processes, on DBOS, LangGraph, Temporal
and Restate, and beside them on bare PostgreSQL with a transaction for each step. Whatever uses
PostgreSQL has a database of its own on the same server, and every commit waits for the disk. Only
the ratios mean anything elsewhere. And what a step costs in runs of 100 to 100,000 steps.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bench.doorbell import NATS
from bench.flow_flatness import SIZES, WORKFLOWS, Cost, flatness
from bench.flow_flatness import measure as measure_flatness
from bench.flow_ours import ours
from bench.flow_peers import BARE, PEERS, peer
from bench.flow_side import FAN, SEQUENCE, Sample
from bench.kernel_peers import PeerFailed, default_folder
from bench.server import parser, quantile

#: Our side, by worker processes.
OURS: Mapping[str, int] = {"ours": 1, "ours, 2 processes": 2}
#: The clients of the figure for bare PostgreSQL by which the runtime is judged.
_BARE_CLIENTS = 16


class System(Protocol):
    """Something that runs flows."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def stores_every_step(self) -> bool: ...
    def measure(self, shape: str, clients: int, seconds: float) -> Sample: ...


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured, and for how long."""

    loads: tuple[tuple[str, int], ...]
    rounds: int
    warm_up: float
    seconds: float
    sizes: tuple[int, ...]


FULL = Plan(((SEQUENCE, 1), (SEQUENCE, 16), (SEQUENCE, 64), (FAN, 1), (FAN, 4)), 3, 1.0, 4.0, SIZES)
QUICK = Plan(((SEQUENCE, 16), (FAN, 1)), 1, 0.3, 1.0, (100, 1_000))


@dataclass(frozen=True, slots=True)
class Cell:
    """A system under one load: every round."""

    shape: str
    clients: int
    rates: list[float] = field(default_factory=list)
    taken: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)


@dataclass(frozen=True, slots=True)
class Entry:
    """A system and its figures."""

    system: System
    cells: list[Cell]

    def best(self, shape: str) -> float:
        """Steps a second under the load that suits it best."""
        return max(cell.rate for cell in self.cells if cell.shape == shape)

    def under(self, shape: str, clients: int) -> float | None:
        for cell in self.cells:
            if (cell.shape, cell.clients) == (shape, clients):
                return cell.rate
        return None


@dataclass(frozen=True, slots=True)
class Contest:
    """All that take part, and why some could not."""

    entries: list[Entry] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    def named(self, name: str) -> Entry | None:
        return next((each for each in self.entries if each.system.name == name), None)

    @property
    def ours(self) -> list[Entry]:
        return [each for each in self.entries if each.system.name in OURS]

    @property
    def rivals(self) -> list[Entry]:
        """The peers that store every step."""
        return [
            each
            for each in self.entries
            if each.system.name not in OURS
            and each.system.name != BARE
            and each.system.stores_every_step
        ]


def invite(
    stack: ExitStack, plan: Plan, folder: Path, server: str, nats: str, peers: bool
) -> Contest:
    """Everybody, installed and ready; the stack removes what they have made."""
    contest = Contest()

    def enter(system: System) -> None:
        contest.entries.append(Entry(system, [Cell(*load) for load in plan.loads]))

    for name in PEERS:
        if name != BARE and not peers:
            continue
        try:
            enter(stack.enter_context(peer(name, folder, server)))
        except PeerFailed as error:
            contest.missing[name] = str(error)
    for name, processes in OURS.items():
        enter(stack.enter_context(ours(name, server, nats, processes)))
    return contest


def measure(contest: Contest, plan: Plan) -> None:
    """All in turns, load by load and round by round; who begins changes with every round.

    One that fails is out.
    """
    for index in range(len(plan.loads)):
        for number in range(plan.rounds + 1):
            for entry in _turned(contest.entries, number):
                cell = entry.cells[index]
                # the first round is the warm-up
                seconds = plan.seconds if number else plan.warm_up
                try:
                    sample = entry.system.measure(cell.shape, cell.clients, seconds)
                except PeerFailed as error:
                    contest.entries.remove(entry)
                    contest.missing[entry.system.name] = str(error)
                    continue
                if number:
                    cell.rates.append(sample.steps_per_second(cell.shape))
                    cell.taken.extend(sample.taken)


def _turned(entries: Sequence[Entry], by: int) -> Iterator[Entry]:
    first = by % len(entries)
    yield from (*entries[first:], *entries[:first])


def table(contest: Contest) -> list[str]:
    rows = [f"{'':<20}{'flow':<10}{'at once':>8}{'steps/s':>24}{'p50 ms':>10}{'p99 ms':>10}"]
    for entry in contest.entries:
        for cell in entry.cells:
            spread = f"{cell.rate:,.0f} ({min(cell.rates):,.0f}-{max(cell.rates):,.0f})"
            p50, p99 = (quantile(cell.taken, share) * 1000 for share in (0.5, 0.99))
            rows.append(
                f"{entry.system.name:<20}{cell.shape:<10}{cell.clients:>8}{spread:>24}"
                f"{p50:>10.1f}{p99:>10.1f}"
            )
    rows += [f"{entry.system.name}: {entry.system.version}" for entry in contest.entries]
    return rows + [f"{name}: not measured: {why}" for name, why in contest.missing.items()]


def cost_table(costs: Sequence[Cost]) -> list[str]:
    rows = [
        f"{'foreach':<12}{'steps':>9}{'worker ms':>12}{'server ms':>12}{'CPU ms':>10}"
        f"{'wall ms':>10}  of each step"
    ]
    rows += [
        f"{each.bound:<12}{each.steps:>9,}{each.worker_ms:>12.3f}{each.server_ms:>12.3f}"
        f"{each.cpu_ms:>10.3f}{each.wall_ms:>10.3f}"
        for each in costs
    ]
    return rows


def figures(contest: Contest, plan: Plan, costs: Sequence[Cost]) -> dict[str, object]:
    """What it comes to: our rates by those of the best peer and of bare PostgreSQL."""
    judged: dict[str, object] = {}
    bare = contest.named(BARE)
    for shape in dict.fromkeys(shape for shape, _ in plan.loads):
        mine = max(each.best(shape) for each in contest.ours)
        best = max((each.best(shape) for each in contest.rivals), default=None)
        suffix = "" if shape == SEQUENCE else f"_{shape}"
        judged[f"vs_best_peer{suffix}"] = _ratio(mine, best)
        judged[f"vs_bare{suffix}"] = _ratio(mine, None if bare is None else _bare_rate(bare, shape))
    flat = {bound: flatness(costs, bound) for bound in WORKFLOWS} if costs else {}
    judged["flatness_100k"] = max((round(each.cpu, 3) for each in flat.values()), default=None)
    judged["flatness_100k_wall"] = max(
        (round(each.wall, 3) for each in flat.values()), default=None
    )
    return {
        **judged,
        "largest_run": max((each.steps for each in costs), default=None),
        "rounds": plan.rounds,
        "seconds": plan.seconds,
        # of the whole machine while it measured: much more than its cores, and others were at work
        "load": round(os.getloadavg()[0], 1),
        "systems": {entry.system.name: _entry_figures(entry) for entry in contest.entries},
        "peers_missing": contest.missing,
        "step_cost_ms": [
            {
                "foreach": each.bound,
                "steps": each.steps,
                "worker": round(each.worker_ms, 4),
                "server": round(each.server_ms, 4),
                "wall": round(each.wall_ms, 4),
            }
            for each in costs
        ],
    }


def _bare_rate(bare: Entry, shape: str) -> float | None:
    """On 16 connections; where that was not measured, as many as were."""
    return bare.under(shape, _BARE_CLIENTS) or bare.best(shape)


def _ratio(mine: float, other: float | None) -> float | None:
    return None if other is None else round(mine / other, 3)


def _entry_figures(entry: Entry) -> dict[str, object]:
    return {
        "version": entry.system.version,
        "stores_every_step": entry.system.stores_every_step,
        "loads": [
            {
                "flow": cell.shape,
                "at_once": cell.clients,
                "steps_per_second": round(cell.rate),
                "lowest": round(min(cell.rates)),
                "highest": round(max(cell.rates)),
                "p50_ms": round(quantile(cell.taken, 0.5) * 1000, 2),
                "p99_ms": round(quantile(cell.taken, 0.99) * 1000, 2),
            }
            for cell in entry.cells
        ],
    }


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--quick", action="store_true", help="few loads, one round, a second each")
    options.add_argument(
        "--peers",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether to measure the peers too",
    )
    options.add_argument(
        "--flatness",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether to measure what a step costs in large runs",
    )
    options.add_argument(
        "--peer-folder", type=Path, default=default_folder(), help="where they are installed"
    )
    options.add_argument("--nats", default=NATS, help=f"URL ({NATS})")
    chosen = options.parse_args()
    plan = QUICK if chosen.quick else FULL
    with ExitStack() as stack:
        where = chosen.peer_folder, chosen.server, chosen.nats, chosen.peers
        contest = invite(stack, plan, *where)
        measure(contest, plan)
    print("\n".join(table(contest)), flush=True)
    costs: list[Cost] = []
    if chosen.flatness:
        costs = measure_flatness(chosen.server, chosen.nats, plan.sizes)
        print("\n".join(["", *cost_table(costs)]))
    print(json.dumps(figures(contest, plan, costs)))


if __name__ == "__main__":
    main()
