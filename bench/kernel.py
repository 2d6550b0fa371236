"""How much of a database's own speed reaches a worker: `python -m bench.kernel`.

Three sides in one run, on one machine, in turns: the bare cycle of insert, claim and complete by
pgbench, the same cycle through the kernel's port, and the same cycle through queues that others
have built. Only their ratios mean anything elsewhere. The databases are made for the run and
dropped afterwards; every transaction waits for the disk, except in Redis, which Celery runs on.

With `--store mongo` the database is a MongoDB, and the bare cycle is pymongo's; there are no peers.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.kernel_bare import Bare
from bench.kernel_bare_mongo import BareMongo
from bench.kernel_clients import Clients
from bench.kernel_ours import Ours
from bench.kernel_peers import PEERS, Peer, PeerFailed, default_folder, peer
from bench.server import MONGODB, database, mongo_database, parser

#: The figures by which the kernel is judged.
_MOST_CLIENTS = 16
_LARGEST_BATCH = 100
_JUDGED = (1, _LARGEST_BATCH)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured, and for how long."""

    clients: tuple[int, ...]
    batches: tuple[int, ...]
    rounds: int
    warm_up: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of the table: tasks a second of every round, by side."""

    clients: int
    batch: int
    bare: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        return statistics.median(self.ours) / statistics.median(self.bare)


@dataclass(frozen=True, slots=True)
class Rival:
    """A peer, and its tasks a second of every round by batch."""

    peer: Peer
    rates: dict[int, list[float]]


@dataclass(frozen=True, slots=True)
class Rivals:
    """The peers, and why some of them could not be measured."""

    measured: list[Rival] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    def best(self, batch: int) -> float:
        """Of the medians; 0 if there is none."""
        return max((statistics.median(each.rates[batch]) for each in self.measured), default=0.0)


def measure(url: str, plan: Plan, rivals: Rivals) -> list[Cell]:
    """All sides in turns, round by round; the side that begins alternates."""
    cells = [Cell(clients, batch) for batch in plan.batches for clients in plan.clients]
    with Clients() as processes:
        bare = BareMongo(url, processes) if url.startswith("mongodb") else Bare.create(url)
        ours = Ours(url, processes)
        for number in range(plan.rounds):
            for cell in cells:
                what = cell.clients, cell.batch, plan.warm_up, plan.seconds
                if number % 2:
                    cell.ours.append(ours.tasks_per_second(*what))
                cell.bare.append(bare.tasks_per_second(*what))
                if not number % 2:
                    cell.ours.append(ours.tasks_per_second(*what))
                if cell.clients == _MOST_CLIENTS and cell.batch in _JUDGED:
                    measure_rivals(rivals, cell.batch, plan)
    return cells


def measure_rivals(rivals: Rivals, batch: int, plan: Plan) -> None:
    """One round of every peer; one that fails is out."""
    for rival in rivals.measured.copy():
        try:
            rate = rival.peer.tasks_per_second(_MOST_CLIENTS, batch, plan.warm_up, plan.seconds)
        except PeerFailed as error:
            rivals.measured.remove(rival)
            rivals.missing[rival.peer.name] = str(error)
        else:
            rival.rates[batch].append(rate)


def invite(stack: ExitStack, folder: Path, server: str, redis: str) -> Rivals:
    """The peers, installed; the stack removes what they have made."""
    rivals = Rivals()
    for name in PEERS:
        try:
            made = stack.enter_context(peer(name, folder, server, redis))
        except PeerFailed as error:
            rivals.missing[name] = str(error)
        else:
            rivals.measured.append(Rival(made, {batch: [] for batch in _JUDGED}))
    return rivals


def report(cells: list[Cell], plan: Plan, rivals: Rivals | None) -> str:
    """A table, and the figures as one JSON object in the last line."""
    head = f"{'batch':>5}{'clients':>9}{'bare tasks/s':>24}{'ours tasks/s':>24}{'ratio':>8}"
    rows = [
        f"{cell.batch:>5}{cell.clients:>9}{_spread(cell.bare):>24}{_spread(cell.ours):>24}"
        f"{cell.ratio:>8.2f}"
        for cell in cells
    ]
    judged = {cell.batch: cell for cell in cells if cell.clients == _MOST_CLIENTS}
    figures = {
        "single_ratio": round(judged[1].ratio, 3),
        "batch_ratio": round(judged[_LARGEST_BATCH].ratio, 3),
        "rounds": plan.rounds,
        "seconds": plan.seconds,
        # of the whole machine while it measured: much more than its cores, and others were at work
        "load": round(os.getloadavg()[0], 1),
        "cells": [
            {
                "clients": cell.clients,
                "batch": cell.batch,
                "bare": _figures(cell.bare),
                "ours": _figures(cell.ours),
                "ratio": round(cell.ratio, 3),
            }
            for cell in cells
        ],
    }
    if rivals is not None:
        rows += _rival_rows(rivals, judged)
        figures |= _rival_figures(rivals, judged)
    return "\n".join([head, *rows, json.dumps(figures)])


def _rival_rows(rivals: Rivals, judged: dict[int, Cell]) -> list[str]:
    rows = ["", f"{'peer':<16}{'batch':>5}{'clients':>9}{'tasks/s':>24}{'ours to it':>12}"]
    for rival in rivals.measured:
        for batch, rates in rival.rates.items():
            lead = statistics.median(judged[batch].ours) / statistics.median(rates)
            rows.append(
                f"{rival.peer.name:<16}{batch:>5}{_MOST_CLIENTS:>9}{_spread(rates):>24}{lead:>12.2f}"
            )
    return rows + [f"{name:<16}not measured: {why}" for name, why in rivals.missing.items()]


def _rival_figures(rivals: Rivals, judged: dict[int, Cell]) -> dict[str, object]:
    def lead(batch: int) -> float | None:
        best = rivals.best(batch)
        return round(statistics.median(judged[batch].ours) / best, 3) if best else None

    return {
        "peers": {
            rival.peer.name: {
                "single": round(statistics.median(rival.rates[1])),
                "batch_100": round(statistics.median(rival.rates[_LARGEST_BATCH])),
            }
            for rival in rivals.measured
        },
        "peers_missing": rivals.missing,
        "vs_best_peer_single": lead(1),
        "vs_best_peer_batch": lead(_LARGEST_BATCH),
    }


def _spread(rates: list[float]) -> str:
    return f"{statistics.median(rates):,.0f} ({min(rates):,.0f}-{max(rates):,.0f})"


def _figures(rates: list[float]) -> dict[str, int]:
    return {
        "median": round(statistics.median(rates)),
        "lowest": round(min(rates)),
        "highest": round(max(rates)),
    }


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seconds", type=int, default=3, help="for each measurement (3)")
    options.add_argument(
        "--quick", action="store_true", help="two rows, one round, a second each, no peers"
    )
    options.add_argument(
        "--peers", action=argparse.BooleanOptionalAction, help="whether to measure the peers too"
    )
    options.add_argument(
        "--peer-folder", type=Path, default=default_folder(), help="where they are installed"
    )
    options.add_argument("--store", choices=("postgres", "mongo"), default="postgres")
    options.add_argument(
        "--mongodb", default=MONGODB, help=f"the server of --store mongo ({MONGODB})"
    )
    options.add_argument("--redis", default="redis://127.0.0.1:6379/0", help="what Celery runs on")
    chosen = options.parse_args()
    if chosen.quick:
        # on MongoDB the clients together take more than a second for one batch each
        warm_up, seconds = (0, 1) if chosen.store == "postgres" else (2, chosen.seconds)
        plan = Plan((_MOST_CLIENTS,), _JUDGED, rounds=1, warm_up=warm_up, seconds=seconds)
    else:
        plan = Plan((1, 4, _MOST_CLIENTS), (1, 10, _LARGEST_BATCH), 3, 1, chosen.seconds)
    with ExitStack() as stack:
        rivals = None
        if chosen.store == "mongo":
            url = stack.enter_context(mongo_database(chosen.mongodb))
        else:
            if chosen.peers or (chosen.peers is None and not chosen.quick):
                rivals = invite(stack, chosen.peer_folder, chosen.server, chosen.redis)
            url = stack.enter_context(database(chosen.server))
        print(report(measure(url, plan, rivals or Rivals()), plan, rivals))


if __name__ == "__main__":
    main()
