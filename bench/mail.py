"""How much of Redis's own speed reaches an agent: `python -m bench.mail`.

The cycle is send, receive, acknowledge. Two sides in turns, on one server in one run: the same
scripts called bare with the same client, and the coordinator; and Celery on the same Redis, with as
many clients and threads. Only their ratios mean anything elsewhere. Everything lies below a prefix
of its own and is removed afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import redis

from bench.kernel_peers import PeerFailed, Process, default_folder, peer

CONSUMERS = (1, 8, 32)
SIDES = ("bare", "ours")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured, and for how long."""

    consumers: tuple[int, ...]
    rounds: int
    warm_up: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of the table: cycles a second of every round, by side."""

    consumers: int
    bare: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """The median of the rounds, each of two neighbours in time, since machines are shared."""
        return statistics.median(
            ours / bare for ours, bare in zip(self.ours, self.bare, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Rival:
    """Celery's tasks a second of every round, or why there are none."""

    rates: list[float] = field(default_factory=list)
    missing: str | None = None


def measure(url: str, plan: Plan) -> list[Cell]:
    """Both sides in turns, round by round; the side that begins alternates."""
    cells = [Cell(consumers) for consumers in plan.consumers]
    for number in range(plan.rounds):
        for cell in cells:
            for side in SIDES if number % 2 else reversed(SIDES):
                rate = cycles_per_second(side, url, cell.consumers, plan)
                (cell.ours if side == "ours" else cell.bare).append(rate)
    return cells


def cycles_per_second(side: str, url: str, consumers: int, plan: Plan) -> float:
    """One measurement on an empty mailbox, with a process for each core."""
    processes = min(consumers, os.cpu_count() or 1)
    with ExitStack() as stack:
        prefix = stack.enter_context(own_prefix(url))
        sides = []
        for number in range(processes):
            share = consumers // processes + (number < consumers % processes)
            command = [sys.executable, "-m", "bench.mail_side", side, url, prefix, str(share)]
            sides.append(Process(command))
            stack.callback(sides[-1].close)
        for each in sides:
            each.answer()
        _run(sides, plan.warm_up)
        return _run(sides, plan.seconds)


def _run(sides: list[Process], seconds: float) -> float:
    begun = time.monotonic()
    for each in sides:
        each.ask(f"run {seconds}")
    done = sum(int(each.answer()) for each in sides)
    return done / (time.monotonic() - begun)


@contextmanager
def own_prefix(url: str) -> Iterator[str]:
    """A prefix below which nothing is left afterwards."""
    prefix = f"afl-bench-{secrets.token_hex(6)}"
    try:
        yield prefix
    finally:
        with redis.Redis.from_url(url) as client:
            for key in client.scan_iter(match=f"{prefix}:*", count=1000):
                client.delete(key)


def measure_celery(url: str, plan: Plan, folder: Path) -> Rival:
    rival = Rival()
    try:
        with peer("celery", folder, "", url) as celery:
            for _ in range(plan.rounds):
                rival.rates.append(
                    celery.tasks_per_second(
                        max(plan.consumers), 1, int(plan.warm_up), int(plan.seconds)
                    )
                )
    except PeerFailed as error:
        return Rival(missing=str(error))
    return rival


def report(cells: list[Cell], plan: Plan, rival: Rival | None) -> str:
    """A table, and the figures as one JSON object in the last line."""
    head = f"{'consumers':>9}{'bare cycles/s':>24}{'ours cycles/s':>24}{'ratio':>8}"
    rows = [
        f"{cell.consumers:>9}{_spread(cell.bare):>24}{_spread(cell.ours):>24}{cell.ratio:>8.2f}"
        for cell in cells
    ]
    figures: dict[str, object] = {f"ratio_{cell.consumers}": round(cell.ratio, 3) for cell in cells}
    figures |= {
        "rounds": plan.rounds,
        "seconds": plan.seconds,
        # of the whole machine while it measured: much more than its cores, and others were at work
        "load": round(os.getloadavg()[0], 1),
        "cells": [
            {
                "consumers": cell.consumers,
                "bare": _figures(cell.bare),
                "ours": _figures(cell.ours),
            }
            for cell in cells
        ],
    }
    if rival is not None:
        most = cells[-1]
        if rival.rates:
            lead = statistics.median(most.ours) / statistics.median(rival.rates)
            rows.append(
                f"celery, {most.consumers} clients: {_spread(rival.rates)}, {lead:.2f} times"
            )
            figures |= {"celery": _figures(rival.rates), "vs_celery": round(lead, 3)}
        else:
            rows.append(f"celery: not measured: {rival.missing}")
            figures |= {"celery": None, "vs_celery": None}
    return "\n".join([head, *rows, json.dumps(figures)])


def _spread(rates: list[float]) -> str:
    return f"{statistics.median(rates):,.0f} ({min(rates):,.0f}-{max(rates):,.0f})"


def _figures(rates: list[float]) -> dict[str, int]:
    return {
        "median": round(statistics.median(rates)),
        "lowest": round(min(rates)),
        "highest": round(max(rates)),
    }


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--redis", default="redis://127.0.0.1:6379/0", help="where to measure")
    options.add_argument("--rounds", type=int, default=5, help="of each measurement (5)")
    options.add_argument("--seconds", type=float, default=2, help="for each measurement (2)")
    options.add_argument(
        "--quick", action="store_true", help="one round of half a second each, no Celery"
    )
    options.add_argument(
        "--celery", action=argparse.BooleanOptionalAction, help="whether to measure Celery too"
    )
    options.add_argument(
        "--peer-folder", type=Path, default=default_folder(), help="where Celery is installed"
    )
    chosen = options.parse_args()
    if chosen.quick:
        plan = Plan(CONSUMERS, rounds=1, warm_up=0.1, seconds=0.5)
    else:
        plan = Plan(CONSUMERS, chosen.rounds, 1.0, chosen.seconds)
    cells = measure(chosen.redis, plan)
    rival = None
    if chosen.celery or (chosen.celery is None and not chosen.quick):
        rival = measure_celery(chosen.redis, plan, chosen.peer_folder)
    print(report(cells, plan, rival))


if __name__ == "__main__":
    main()
