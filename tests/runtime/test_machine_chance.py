"""Random programs with random answers: how they are run changes nothing.

Neither what an evaluator has in memory, nor the order in which work is answered.
"""

from __future__ import annotations

import pytest

from afl.runtime.states import RunState
from tests.runtime.conformance.chance import ChanceDriver, Trace, programs, trace, uses
from tests.runtime.conformance.driver import ORDERS

PARTS, PROGRAMS = 2, 25
ENDED = {RunState.COMPLETED, RunState.FAILED}


@pytest.mark.parametrize("part", range(PARTS))
def test_warm_and_cold_evaluators_leave_the_same_rows(part: int) -> None:
    """One that keeps all it knows, a new one for every claim, and two that take turns."""
    steps = 0
    for program, workflow, inputs in programs(f"memory {part}", PROGRAMS):
        warm, cold, both = (
            trace(ChanceDriver(program, f"{part}", evaluators=number), workflow.name, inputs)
            for number in (1, 0, 2)
        )
        assert warm == cold == both, (part, workflow.name, inputs)
        assert {state for state, _, _ in warm.ends.values()} <= ENDED
        steps += len(warm.steps)
    assert steps > PROGRAMS * 5


@pytest.mark.parametrize("part", range(PARTS))
def test_the_order_of_answers_changes_nothing(part: int) -> None:
    """As it was made, the other way round, and by chance between three workers."""
    for program, workflow, inputs in programs(f"order {part}", PROGRAMS):
        if uses(program, "FailFast"):
            continue  # what has not started by then depends on when something fails
        made, reverse, chance = (
            trace(ChanceDriver(program, f"{part}", order=order), workflow.name, inputs)
            for order in ORDERS
        )
        assert made.ends == reverse.ends == chance.ends, (part, workflow.name, inputs)
        assert _states(made) == _states(reverse) == _states(chance)


def _states(found: Trace) -> list[tuple[str, str]]:
    return sorted((step.path, step.state) for step in found.steps)
