"""Seeded simulation of the kernel: random work, workers that crash, and a judge outside the store.

`run_schedule` plays one schedule, which its seed determines; `shrink` finds a smaller one that
fails in the same way. `scenario` makes the work, `worker` and `actors` live, `faults` says what
goes wrong, `scheduler` decides who goes next, `watch` and `locks` check every transaction, the
former against `ledger`, and `judge` the end. `trace` writes it down for people.
"""

from __future__ import annotations

from afl.testing.simulation.ledger import Violation
from afl.testing.simulation.run import Result, run_schedule
from afl.testing.simulation.scheduler import Plan, Simulation
from afl.testing.simulation.shrink import shrink

__all__ = ["Plan", "Result", "Simulation", "Violation", "run_schedule", "shrink"]
