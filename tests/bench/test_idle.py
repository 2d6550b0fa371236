"""Idle workers leave the database alone."""

from __future__ import annotations

import json

import psycopg
import pytest

from afl.kernel.waiting import PollPolicy
from bench.idle import measure, report, usage
from tests.bench.servers import NATS, SERVER, needs_nats, needs_postgres

WORKERS = 5
SECONDS = 4.0


@needs_postgres
@needs_nats
@pytest.mark.slow
def test_idle_workers_look_seldom_and_cost_little() -> None:
    result = measure(SERVER, NATS, WORKERS, SECONDS, settling_seconds=4.0)
    policy = PollPolicy()
    shortest = policy.max_seconds * (1 - policy.jitter)
    assert 0 < result.looks <= WORKERS * (SECONDS / shortest + 1)
    figures = json.loads(report(result).splitlines()[-1])
    assert figures["workers"] == WORKERS
    # ten times the aim for a fleet four times as large: a worker that spins takes a whole core
    assert 0 <= figures["own_core_share"] < 0.2, figures


@needs_postgres
def test_usage_counts_the_time_of_backends_of_this_database_and_of_ended_ones() -> None:
    burn = "select count(*) from generate_series(1, 2000000)"
    before = usage(SERVER)
    with psycopg.connect(SERVER) as connection:
        connection.execute(burn)
        during = usage(SERVER)
        assert during.backends[connection.info.backend_pid] > 0.02
        assert during.server >= before.server + 0.02
    assert usage(SERVER).server >= before.server + 0.02, "what has ended still counts"
