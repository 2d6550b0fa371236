"""How long lists of runs take among a million finished ones: `python -m bench.api`.

A page is 200 runs, the newest first, with how many steps each of them has in which state: what the
list in the browser shows. Pages are asked for with many kinds of filters, each time with other
values, and the counts by state beside them. Only the store is measured, not HTTP.

Between the pages the same sum is added up again and again, about 10 ms of work that asks nobody:
how far its slowest are from its median is what the machine itself adds to the 99th of 100 cases.
Each page is asked for three times, too: the first time counts, and the best of the three stands
beside it, which a machine that stops for a moment now and then does not delay.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random

from afl.runtime.persistence import PersistenceAPI
from afl.runtime.postgres.migrate import migrate
from afl.runtime.postgres_store import PostgresPersistence
from afl.runtime.run_search import RunFilter
from afl.runtime.step import WorkflowId
from bench.api_runs import DAYS, seed
from bench.server import database, parser, quantile

RUNS = 1_000_000
PAGE = 200
#: What a page may take in the 99th of 100 cases.
BOUND_MS = 50.0
_WARM_UP = 5
_TRIES = 3
#: Numbers that make about 10 ms of work.
_SUM = 500_000


@dataclass(frozen=True, slots=True)
class Plan:
    """How many runs there are, and how often each kind of page is asked for."""

    runs: int = RUNS
    rounds: int = 200


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of filter: every page has other values, and how long each took."""

    make: Callable[[Random], RunFilter]
    #: pages from the middle of the list instead of its beginning
    deep: bool = False
    pages: list[float] = field(default_factory=list)
    #: the best of each three
    best: list[float] = field(default_factory=list)
    counts: list[float] = field(default_factory=list)
    found: list[int] = field(default_factory=list)


def kinds(store: PersistenceAPI) -> dict[str, Kind]:
    """What people ask for."""
    now = store.now()

    def days(rng: Random) -> dict[str, object]:
        until = now - timedelta(days=rng.uniform(1, DAYS - 2))
        return {"since": until - timedelta(days=1), "until": until}

    def customer(rng: Random) -> dict[str, str]:
        return {"customer": f"c{rng.randrange(5000)}"}

    return {
        "all": Kind(lambda rng: RunFilter()),
        "all, from the middle": Kind(lambda rng: RunFilter(), deep=True),
        "that nobody called": Kind(lambda rng: RunFilter(top_only=True)),
        "state": Kind(lambda rng: RunFilter(state=rng.choice(("failed", "canceled", "paused")))),
        "workflow": Kind(lambda rng: RunFilter(workflow=rng.choice(("shop.Order", "jobs.Job3")))),
        "workflow and state": Kind(
            lambda rng: RunFilter(workflow=f"seldom.Audit{rng.randrange(3)}", state="failed")
        ),
        "tenant and state": Kind(
            lambda rng: RunFilter(tenant=rng.choice(("acme", "small")), state="failed")
        ),
        "a day": Kind(lambda rng: RunFilter(**days(rng))),  # type: ignore[arg-type]
        "a day and state": Kind(lambda rng: RunFilter(state="failed", **days(rng))),  # type: ignore[arg-type]
        "label of most": Kind(lambda rng: RunFilter(labels={"env": "prod"}), deep=True),
        "label of few": Kind(lambda rng: RunFilter(labels=customer(rng))),
        "two labels": Kind(
            lambda rng: RunFilter(labels={"env": "test", "team": f"team-{rng.randrange(8)}"})
        ),
        "text in a workflow": Kind(lambda rng: RunFilter(text=f"audit{rng.randrange(3)}")),
        "text in errors": Kind(lambda rng: RunFilter(text=f"LEDGER-{rng.randrange(42, 48)} ")),
        "text in a key": Kind(
            lambda rng: RunFilter(text=f"order-{2 * rng.randrange(1, RUNS // 2)}")
        ),
        "text nowhere": Kind(lambda rng: RunFilter(text=f"nowhere {rng.random()}")),
        "all at once": Kind(
            lambda rng: RunFilter(
                state="failed",
                workflow="shop.Order",
                labels={"env": "prod"},
                text="timed out",
                tenant="default",
                top_only=True,
                **days(rng),  # type: ignore[arg-type]
            )
        ),
    }


@dataclass(frozen=True, slots=True)
class Measured:
    """How long pages took by kind, and work that nothing but the machine can delay."""

    kinds: Mapping[str, Kind]
    machine: list[float]


def measure(server: str, plan: Plan) -> Measured:
    """Every kind in turns, in a database of its own."""
    with database(server) as url:
        migrate(url)
        seed(url, plan.runs)
        store = PostgresPersistence.connect(url)
        try:
            asked = kinds(store)
            deep = _middle(store)
            rng = Random("api")
            machine = []
            for number in range(_WARM_UP + plan.rounds):
                for kind in asked.values():
                    _ask(store, kind, rng, deep, is_counted=number >= _WARM_UP)
                    machine.append(_add_up())
            return Measured(asked, machine)
        finally:
            store.close()


def _middle(store: PersistenceAPI) -> WorkflowId:
    """A run from the middle of the month."""
    middle = RunFilter(until=store.now() - timedelta(days=DAYS / 2))
    return store.search_runs(middle, limit=1)[0].id


def _ask(
    store: PersistenceAPI, kind: Kind, rng: Random, deep: WorkflowId, *, is_counted: bool
) -> None:
    wanted = kind.make(rng)
    before = deep if kind.deep else None
    times, found = [], 0
    for _ in range(_TRIES):
        begun = time.perf_counter()
        page = store.search_runs(wanted, before=before, limit=PAGE)
        store.tallies([each.id for each in page])
        times.append((time.perf_counter() - begun) * 1000)
        found = len(page)
    begun = time.perf_counter()
    store.count_runs(wanted)
    if is_counted:
        kind.pages.append(times[0])
        kind.best.append(min(times))
        kind.counts.append((time.perf_counter() - begun) * 1000)
        kind.found.append(found)


def _add_up() -> float:
    begun = time.perf_counter()
    sum(range(_SUM))
    return (time.perf_counter() - begun) * 1000


def report(measured: Measured, plan: Plan) -> str:
    """A table, and the figures as one JSON object in the last line."""
    asked, machine = measured.kinds, measured.machine
    rows = [
        f"{'filter':<24}{'runs':>6}{'p50 ms':>9}{'p99 ms':>9}{'best p99':>10}"
        f"{'counts p50':>12}{'p99 ms':>9}"
    ]
    for name, kind in asked.items():
        rows.append(
            f"{name:<24}{quantile(kind.found, 0.5):>6.0f}{quantile(kind.pages, 0.5):>9.1f}"
            f"{quantile(kind.pages, 0.99):>9.1f}{quantile(kind.best, 0.99):>10.1f}"
            f"{quantile(kind.counts, 0.5):>12.1f}{quantile(kind.counts, 0.99):>9.1f}"
        )
    rows.append(
        f"{'(the machine alone)':<30}{quantile(machine, 0.5):>9.1f}{quantile(machine, 0.99):>9.1f}"
    )
    pages = [each for kind in asked.values() for each in kind.pages]
    worst = {name: round(quantile(kind.pages, 0.99), 1) for name, kind in asked.items()}
    figures = {
        "list_p99_ms": max(worst.values()),
        "list_p50_ms": round(quantile(pages, 0.5), 2),
        "best_of_three_p99_ms": round(max(quantile(kind.best, 0.99) for kind in asked.values()), 1),
        "all_lists_p99_ms": round(quantile(pages, 0.99), 1),
        "machine_p50_ms": round(quantile(machine, 0.5), 1),
        "machine_p99_ms": round(quantile(machine, 0.99), 1),
        "count_p99_ms": round(max(quantile(kind.counts, 0.99) for kind in asked.values()), 1),
        "bound_ms": BOUND_MS,
        "runs": plan.runs,
        "page": PAGE,
        "rounds": plan.rounds,
        "load": round(os.getloadavg()[0], 1),
        "filters": worst,
    }
    return "\n".join([*rows, json.dumps(figures)])


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--runs", type=int, default=RUNS, help=f"finished runs ({RUNS})")
    options.add_argument("--rounds", type=int, default=200, help="pages of each kind (200)")
    chosen = options.parse_args()
    plan = Plan(chosen.runs, chosen.rounds)
    print(report(measure(chosen.server, plan), plan))


if __name__ == "__main__":
    main()
