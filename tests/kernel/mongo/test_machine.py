"""The MongoDB store plays random games against the reference, and never differs."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from afl.testing.conformance.machine import kernel_machine
from tests.kernel.mongo.databases import MongoHarness, clear

GAMES = int(os.environ.get("KERNEL_GAMES", "12"))


@pytest.mark.timeout(max(300, GAMES * 30))
def test_games(url: str) -> None:
    harnesses: list[MongoHarness] = []

    def fresh() -> MongoHarness:
        while harnesses:
            harnesses.pop().close()
        clear(url)
        harnesses.append(MongoHarness(url))
        return harnesses[0]

    run_state_machine_as_test(
        kernel_machine(fresh),
        settings=settings(
            max_examples=GAMES,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
    while harnesses:
        harnesses.pop().close()
