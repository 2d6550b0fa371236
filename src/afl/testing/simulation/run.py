"""One schedule from its plan to its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from afl.base.errors import AflError
from afl.kernel.model import CallStatus
from afl.kernel.rules import answer_of, status_of
from afl.testing.simulation.faults import Entry
from afl.testing.simulation.ledger import Violation
from afl.testing.simulation.scenario import expected_answer
from afl.testing.simulation.scheduler import Plan, Simulation
from afl.testing.simulation.watch import Counts

#: How a store that is wrong shows it: a broken promise, a constraint, or an error of its own.
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
    roots: int
    #: roots that came to what they come to in a run without faults
    as_expected: int
    pieces: tuple[str, ...]


def run_schedule(
    plan: Plan,
    simulation: Callable[[Plan, Callable[[str], None] | None], Simulation] = Simulation,
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
        len(played.scenario.roots),
        _as_expected(played),
        tuple(sorted(played.scenario.pieces)),
    )


def _as_expected(played: Simulation) -> int:
    ledger = played.store.ledger
    count = 0
    for root in played.scenario.roots:
        task = ledger.idems.get(f"submit-{root.piece.path}")
        row = None if task is None else ledger.tasks[task].closed
        if row is not None and row.outcome is not None:
            status, value = expected_answer(root.piece)
            same = status is CallStatus.ERROR or answer_of(row) == value
            count += status_of(row.outcome) is status and same
    return count
