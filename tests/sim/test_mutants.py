"""Take one thing away from the kernel, and the simulation notices."""

from __future__ import annotations

import pytest

from afl.kernel.memory import sweeps, transitions
from afl.testing.simulation import Plan, run_schedule
from tests.sim.campaign import MUTANT_SCHEDULES
from tests.sim.mutants import MUTANTS, Mutant, first_kill


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_found_out(mutant: Mutant) -> None:
    result = first_kill(mutant, MUTANT_SCHEDULES)
    assert result is not None, f"'{mutant.name}' survived {MUTANT_SCHEDULES} schedules"
    # it is the mutant that fails there, not the schedule
    assert run_schedule(Plan(result.plan.seed)).rule is None


def test_a_mutant_leaves_nothing_behind() -> None:
    before = {**vars(transitions), **vars(sweeps)}
    for mutant in MUTANTS:
        first_kill(mutant, 1)
    assert {**vars(transitions), **vars(sweeps)} == before


def test_every_mutant_has_its_own_name() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
