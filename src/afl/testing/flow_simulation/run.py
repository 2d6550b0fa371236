"""One schedule from its plan to its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from afl.base.errors import AflError
from afl.testing.flow_simulation.scheduler import FlowSimulation, Plan
from afl.testing.flow_simulation.store import Counts
from afl.testing.simulation.faults import Entry
from afl.testing.simulation.ledger import Violation

#: How a machine that is wrong shows it: a broken promise, or an error of its own.
_FAILURES = (Violation, AssertionError, AflError, LookupError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a schedule."""

    plan: Plan
    #: the promise that was broken; None if all is well
    rule: str | None
    failure: str
    tape: tuple[Entry, ...]
    counts: Counts
    steps: int
    seconds: float


def run_schedule(
    plan: Plan,
    simulation: Callable[[Plan, Callable[[str], None] | None], FlowSimulation] = FlowSimulation,
    trace: Callable[[str], None] | None = None,
) -> Result:
    """Plays a schedule. `trace` is told every step."""
    played = simulation(plan, trace)
    rule, failure = None, ""
    try:
        played.run()
    except _FAILURES as error:
        rule = error.rule if isinstance(error, Violation) else type(error).__name__
        failure = str(error) or repr(error)
    return Result(
        plan,
        rule,
        failure,
        tuple(played.tape.entries),
        played.store.counts,
        played.steps,
        played.now,
    )
