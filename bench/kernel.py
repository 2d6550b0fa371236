"""How much of PostgreSQL's own speed reaches a worker: `python -m bench.kernel`.

Two sides in one run, on one server, in turns: the bare cycle of insert, claim and complete by
pgbench, and the same cycle through the kernel's port. Only their ratio means anything elsewhere.
The database is made for the run and dropped afterwards; every transaction waits for the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from bench.kernel_bare import Bare
from bench.kernel_ours import Ours
from bench.kernel_peers import PEERS, Peer

#: The figures by which the kernel is judged.
_MOST_CLIENTS = 16
_LARGEST_BATCH = 100


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


@contextmanager
def database(server: str) -> Iterator[str]:
    """The URL of a database for this run."""
    name = f"afl_bench_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"create database {name}".encode())
        try:
            admin.execute(f"alter database {name} set synchronous_commit to on".encode())
            yield make_conninfo(server, dbname=name)
        finally:
            admin.execute(f"drop database {name} with (force)".encode())


def measure(url: str, plan: Plan) -> list[Cell]:
    """Both sides in turns, round by round; the side that begins alternates."""
    cells = [Cell(clients, batch) for batch in plan.batches for clients in plan.clients]
    bare = Bare.create(url)
    with Ours(url) as ours:
        for number in range(plan.rounds):
            for cell in cells:
                what = cell.clients, cell.batch, plan.warm_up, plan.seconds
                if number % 2:
                    cell.ours.append(ours.tasks_per_second(*what))
                cell.bare.append(bare.tasks_per_second(*what))
                if not number % 2:
                    cell.ours.append(ours.tasks_per_second(*what))
    return cells


def report(cells: list[Cell], plan: Plan) -> str:
    """A table, and the figures as one JSON object in the last line."""
    head = f"{'batch':>5}{'clients':>9}{'bare tasks/s':>24}{'ours tasks/s':>24}{'ratio':>8}"
    rows = [
        f"{cell.batch:>5}{cell.clients:>9}{_spread(cell.bare):>24}{_spread(cell.ours):>24}"
        f"{cell.ratio:>8.2f}"
        for cell in cells
    ]
    ratios = {(cell.clients, cell.batch): round(cell.ratio, 3) for cell in cells}
    figures = {
        "single_ratio": ratios[_MOST_CLIENTS, 1],
        "batch_ratio": ratios[_MOST_CLIENTS, _LARGEST_BATCH],
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
    return "\n".join([head, *rows, json.dumps(figures)])


def measure_peers(server: str, plan: Plan) -> list[str]:
    """A line for each peer and batch, with as many clients as the kernel is judged by."""
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in PEERS:
            with database(server) as url:
                peer = Peer.create(name, Path(folder), url)
                for batch in plan.batches:
                    what = _MOST_CLIENTS, batch, plan.warm_up, plan.seconds
                    rates = [peer.tasks_per_second(*what) for _ in range(plan.rounds)]
                    lines.append(f"{name:<16}{batch:>5}{_MOST_CLIENTS:>9}{_spread(rates):>24}")
    return lines


def _spread(rates: list[float]) -> str:
    return f"{statistics.median(rates):,.0f} ({min(rates):,.0f}-{max(rates):,.0f})"


def _figures(rates: list[float]) -> dict[str, int]:
    return {
        "median": round(statistics.median(rates)),
        "lowest": round(min(rates)),
        "highest": round(max(rates)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="host=127.0.0.1 dbname=postgres", help="libpq's words")
    parser.add_argument("--seconds", type=int, default=3, help="for each measurement (3)")
    parser.add_argument("--quick", action="store_true", help="two rows, one round, a second each")
    parser.add_argument("--peers", action="store_true", help="also procrastinate and pgqueuer")
    options = parser.parse_args()
    if options.quick:
        plan = Plan((_MOST_CLIENTS,), (1, _LARGEST_BATCH), rounds=1, warm_up=0, seconds=1)
    else:
        plan = Plan((1, 4, _MOST_CLIENTS), (1, 10, _LARGEST_BATCH), 3, 1, options.seconds)
    if options.peers:
        print("\n".join(measure_peers(options.server, plan)))
    with database(options.server) as url:
        print(report(measure(url, plan), plan))


if __name__ == "__main__":
    main()
