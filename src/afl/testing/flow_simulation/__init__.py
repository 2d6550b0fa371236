"""Seeded simulation of flows: the real evaluator and the real kernel rules under faults.

`run_schedule` plays one schedule, which its seed determines; `shrink` finds a smaller program and
fewer faults that fail in the same way. `programs` makes programs, `answers` says what their work
comes to, and `reference`, made of `parts`, what they come to. `worker` and `actors` live,
`scheduler` decides who goes next and what goes wrong, `store` checks every write, and `judge` the
end.
"""

from __future__ import annotations

from afl.testing.flow_simulation.run import Result, run_schedule
from afl.testing.flow_simulation.scheduler import FlowSimulation, Plan
from afl.testing.flow_simulation.shrink import shrink

__all__ = ["FlowSimulation", "Plan", "Result", "run_schedule", "shrink"]
