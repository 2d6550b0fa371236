"""Lists of runs are measured: on runs as the store leaves them, and the last line is JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

import pytest

from afl.runtime.postgres.migrate import migrate
from afl.runtime.postgres_store import PostgresPersistence
from afl.runtime.run_search import RunFilter
from bench.api import Plan, kinds, measure, report
from bench.api_runs import LIVE, seed
from tests.bench.servers import SERVER, needs_postgres
from tests.kernel.postgres.databases import empty_database

RUNS = 2000


@pytest.fixture(scope="module")
def store() -> Iterator[PostgresPersistence]:
    """A store with finished runs."""
    with empty_database() as url:
        migrate(url)
        seed(url, RUNS)
        with PostgresPersistence.connect(url) as made:
            yield made


@needs_postgres
def test_the_runs_are_as_the_store_leaves_them(store: PostgresPersistence) -> None:
    runs = store.search_runs(RunFilter(), limit=2 * RUNS)
    assert len(runs) == RUNS + LIVE
    by_age = sorted(runs, key=lambda each: (each.created_at, each.id), reverse=True)
    assert [each.id for each in by_age] == [each.id for each in runs], "ids tell the time"
    assert all(each.created_at is not None for each in runs)
    counts = store.count_runs(RunFilter())
    assert sum(counts.values()) == RUNS + LIVE
    assert counts["running"] + counts["paused"] == LIVE
    known = {each.id for each in runs}
    assert {each.parent for each in runs} <= known | {None}
    assert len(store.tallies([each.id for each in runs])) == len(runs)


@needs_postgres
def test_every_kind_of_filter_finds_what_fits(store: PostgresPersistence) -> None:
    runs = store.search_runs(RunFilter(), limit=2 * RUNS)
    rng = Random("kinds")
    for name, kind in kinds(store).items():
        wanted = kind.make(rng)
        fitting = [each.id for each in runs if wanted.fits(each)]
        assert [each.id for each in store.search_runs(wanted, limit=2 * RUNS)] == fitting, name


@needs_postgres
def test_the_last_line_is_for_machines() -> None:
    plan = Plan(runs=RUNS, rounds=2)
    measured = measure(SERVER, plan)
    *table, last = report(measured, plan).splitlines()
    figures = json.loads(last)
    assert len(table) == len(measured.kinds) + 2
    assert figures["runs"] == RUNS
    assert figures["list_p99_ms"] == max(figures["filters"].values()) > 0
    assert figures["machine_p99_ms"] >= figures["machine_p50_ms"] > 0
