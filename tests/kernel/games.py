"""Random games against the reference, on stores that are opened and closed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from afl.testing.conformance.harness import Harness
from afl.testing.conformance.machine import kernel_machine

GAMES = int(os.environ.get("KERNEL_GAMES", "12"))


class OpenHarness(Harness, Protocol):
    def close(self) -> None: ...


def play(make: Callable[[], OpenHarness]) -> None:
    """As many games as are wanted, each on a store that has nothing."""
    played: list[OpenHarness] = []

    def fresh() -> Harness:
        while played:
            played.pop().close()
        played.append(make())
        return played[0]

    run_state_machine_as_test(
        kernel_machine(fresh),
        settings=settings(
            max_examples=GAMES,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
    while played:
        played.pop().close()
