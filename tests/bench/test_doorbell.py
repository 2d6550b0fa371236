"""Doorbells between processes: they wake a worker long before it would have looked by itself."""

from __future__ import annotations

import json
import statistics

import pytest

from bench.doorbell import measure, report
from tests.bench.servers import NATS, SERVER, needs_nats, needs_postgres

POLL_SECONDS = 2.0


@needs_postgres
@needs_nats
@pytest.mark.slow
def test_a_ring_is_far_quicker_than_polling_and_polling_keeps_its_interval() -> None:
    taken = measure(SERVER, NATS, POLL_SECONDS, rings=15, polls=4)
    interval_ms = POLL_SECONDS * 1000
    for way in ("nats", "notify"):
        assert all(value > 0 for value in taken[way]), "nobody can claim before the commit"
        # a worker that missed most rings would be at half of the interval
        assert statistics.median(taken[way]) < interval_ms / 8, taken
    # a claim and a loaded machine on top
    assert max(taken["polling"]) < interval_ms + 500, taken
    # four looks of a worker that hears rings after all would take milliseconds
    assert sum(taken["polling"]) > interval_ms / 8, taken
    figures = json.loads(report(taken, POLL_SECONDS).splitlines()[-1])
    assert figures["poll_interval_ms"] == interval_ms
    assert figures["polling_max_ms"] == round(max(taken["polling"]), 2)
