"""Take one thing away from the kernel, and the simulation notices."""

from __future__ import annotations

import pytest

from afl.kernel.machine import mending, transitions
from afl.testing.simulation import Plan, run_schedule
from afl.testing.simulation.faults import Fault
from tests.sim.campaign import MUTANT_SCHEDULES
from tests.sim.mutants import MUTANTS, InTwoSteps, Mutant, first_kill


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_found_out(mutant: Mutant) -> None:
    result = first_kill(mutant, MUTANT_SCHEDULES)
    assert result is not None, f"'{mutant.name}' survived {MUTANT_SCHEDULES} schedules"
    # it is the mutant that fails there, not the schedule
    assert run_schedule(Plan(result.plan.seed)).rule is None


def test_a_mutant_leaves_nothing_behind() -> None:
    before = {**vars(transitions), **vars(mending)}
    for mutant in MUTANTS:
        first_kill(mutant, 1)
    assert {**vars(transitions), **vars(mending)} == before


def test_a_store_that_commits_and_then_claims_is_sound() -> None:
    """Several mutants are made of it, and must not fail because of it."""
    assert first_kill(Mutant("none", InTwoSteps), 60) is None


def test_a_stray_task_that_is_kept_never_ends_however_it_went_astray() -> None:
    """A late copy of a claim does it, and so does a worker that takes up its old name."""
    (mutant,) = (mutant for mutant in MUTANTS if mutant.name == "strays are not given back")
    with mutant.simulation() as simulation:
        results = [run_schedule(Plan(seed), simulation) for seed in range(100)]
    tapes = [{entry.fault for entry in r.tape} for r in results if r.rule == "everything ends"]
    assert any(Fault.NAMESAKE in tape for tape in tapes)
    assert any(Fault.ECHO in tape and Fault.NAMESAKE not in tape for tape in tapes)


def test_every_mutant_has_its_own_name() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
