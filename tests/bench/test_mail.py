"""The measurement of mailboxes measures, says what it found, and leaves nothing behind."""

from __future__ import annotations

import json

import pytest
import redis

from bench.mail import Cell, Plan, Rival, measure, report
from tests.messaging.redis_mailboxes import URL, needs_redis


@needs_redis
@pytest.mark.parametrize("consumers", [1, 3])
def test_both_sides_are_measured_and_nothing_is_left(consumers: int) -> None:
    plan = Plan((consumers,), rounds=1, warm_up=0.05, seconds=0.2)
    (cell,) = measure(URL, plan)
    assert (len(cell.bare), len(cell.ours)) == (1, 1)
    assert cell.bare[0] > 0
    assert cell.ours[0] > 0
    figures = json.loads(report([cell], plan, None).splitlines()[-1])
    assert figures[f"ratio_{consumers}"] == round(cell.ratio, 3)
    with redis.Redis.from_url(URL) as client:
        assert list(client.scan_iter(match="afl-bench-*", count=1000)) == []


def test_the_ratio_is_of_neighbours_and_a_missing_peer_is_said() -> None:
    plan = Plan((32,), rounds=3, warm_up=1, seconds=3)
    cell = Cell(32, bare=[100.0, 200.0, 900.0], ours=[75.0, 150.0, 810.0])
    assert cell.ratio == 0.75
    text = report([cell], plan, Rival(missing="it could not be installed"))
    assert "celery: not measured: it could not be installed" in text
    figures = json.loads(text.splitlines()[-1])
    assert figures["ratio_32"] == 0.75
    assert figures["vs_celery"] is None
    text = report([cell], plan, Rival([75.0, 75.0, 75.0]))
    assert json.loads(text.splitlines()[-1])["vs_celery"] == 2.0
