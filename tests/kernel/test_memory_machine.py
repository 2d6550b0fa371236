"""The memory store plays random games against the reference, and never differs."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from afl.testing.conformance.harness import MemoryHarness
from afl.testing.conformance.machine import kernel_machine

TestMemoryGames = kernel_machine(MemoryHarness).TestCase
TestMemoryGames.settings = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
