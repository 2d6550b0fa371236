"""Work survives crashes, pauses, lost answers and zombies: a few hundred schedules of it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from afl.testing.simulation import Plan, Result, run_schedule, shrink
from afl.testing.simulation.faults import Fault
from afl.testing.simulation.scenario import Piece, Scenario, make_scenario
from tests.sim.__main__ import describe
from tests.sim.campaign import Totals, run_chunk
from tests.sim.mutants import MUTANTS

SCHEDULES = 600
PARTS = 4
CALM = frozenset[str]()


def trace_of(plan: Plan) -> tuple[Result, list[str]]:
    lines: list[str] = []
    return run_schedule(plan, trace=lines.append), lines


@pytest.mark.parametrize("part", range(PARTS))
def test_every_promise_is_kept_under_faults(part: int) -> None:
    share = SCHEDULES // PARTS
    totals = run_chunk(part * share, (part + 1) * share)
    assert totals.schedules == share
    found = [describe(shrink(failure, run_schedule)) for failure in totals.failures[:1]]
    assert found == []
    # a run in which nothing went wrong, or nothing went right, would prove nothing
    assert list(totals.doubts()) == []


@pytest.mark.parametrize("part", range(PARTS))
def test_without_faults_work_comes_to_what_it_should(part: int) -> None:
    determined = 0
    for seed in range(part, 80, PARTS):
        result = run_schedule(Plan(seed, only=CALM))
        assert result.rule is None, describe(result)
        assert result.tape == ()
        if not result.counts.timeouts:  # a deadline takes work out of its worker's hands too
            assert result.counts.stale_writes_refused == 0
            assert result.as_expected == result.roots
            determined += 1
    assert determined > 10


def test_a_seed_is_the_same_schedule_every_time() -> None:
    for seed in range(10):
        first, second = trace_of(Plan(seed)), trace_of(Plan(seed))
        assert first == second
        assert len(first[1]) > 20


def test_seeds_differ() -> None:
    tapes = {run_schedule(Plan(seed)).tape for seed in range(20)}
    assert len(tapes) > 15


def test_only_the_faults_of_the_plan_happen() -> None:
    full = run_schedule(Plan(3))
    assert len(full.tape) > 3
    kept = frozenset(entry.id for entry in full.tape[:2])
    some = run_schedule(Plan(3, only=kept))
    assert {entry.id for entry in some.tape} == kept


def test_work_that_is_left_out_is_not_done() -> None:
    full = run_schedule(Plan(0))
    without = frozenset(path for path in full.pieces if path.startswith("1"))
    rest = run_schedule(Plan(0, without=without))
    assert set(rest.pieces) == set(full.pieces) - without
    assert rest.rule is None


def test_a_failing_schedule_shrinks_and_fails_in_the_same_way() -> None:
    (mutant,) = (mutant for mutant in MUTANTS if mutant.name == "blind write on a miss")
    with mutant.simulation() as simulation:

        def play(plan: Plan) -> Result:
            return run_schedule(plan, simulation)

        failed = next(r for r in (play(Plan(seed)) for seed in range(100)) if r.rule is not None)
        small = shrink(failed, play)
        again = play(small.plan)
    assert small.rule == failed.rule
    assert len(small.tape) < len(failed.tape)
    assert len(small.pieces) < len(failed.pieces)
    assert (again.rule, again.failure, again.tape) == (small.rule, small.failure, small.tape)
    assert f"--seed {failed.plan.seed} --only" in describe(small)


def test_shrinking_stops_after_so_many_tries() -> None:
    failed = run_schedule(Plan(0))
    plans: list[Plan] = []

    def play(plan: Plan) -> Result:
        plans.append(plan)
        return failed

    assert shrink(failed, play, tries=5) is failed
    assert len(plans) == 5


def test_scenarios_have_everything_that_must_be_tried() -> None:
    scenarios = [make_scenario(Random(seed)) for seed in range(400)]
    pieces = [piece for scenario in scenarios for piece in scenario.pieces.values()]
    assert {piece.kind for piece in pieces} == {"flow", "facet", "turn", "tool"}
    assert max(_depth(root.piece) for scenario in scenarios for root in scenario.roots) >= 4
    tools = {len(s) for p in pieces if p.kind == "turn" for s in p.stages}
    assert tools == {1, 2, 3}
    wanted: tuple[Callable[[Piece], object], ...] = (
        lambda p: p.lane and p.hold,
        lambda p: p.lane and not p.hold,
        lambda p: p.fails and p.retry.max_failures >= p.fails,
        lambda p: p.fails and not p.retry.max_failures,
        lambda p: p.poison,
        lambda p: p.cycle,
        lambda p: p.delay,
        lambda p: p.timeout,
        lambda p: p.priority,
        lambda p: p.checkpoint,
        lambda p: p.heartbeat,
    )
    for is_wanted in wanted:
        assert any(is_wanted(piece) for piece in pieces)
    assert any(root.twice for scenario in scenarios for root in scenario.roots)


def test_lanes_that_are_kept_are_taken_in_order() -> None:
    def check(piece: Piece, kept: tuple[str, ...]) -> None:
        if piece.lane is not None:
            assert all(piece.lane > lane for lane in kept)
            kept = (*kept, piece.lane) if piece.hold else kept
        for stage in piece.stages:
            for child in stage:
                check(child, kept)

    for seed in range(200):
        scenario: Scenario = make_scenario(Random(seed))
        for root in scenario.roots:
            check(root.piece, ())


def test_a_campaign_that_proves_nothing_says_so() -> None:
    empty = list(Totals().doubts())
    assert "stale_writes_refused is 0" in empty
    assert "tasks_recovered is 0" in empty
    assert len([doubt for doubt in empty if doubt.startswith("there was no")]) == len(Fault)


def _depth(piece: Piece) -> int:
    return 1 + max((_depth(child) for stage in piece.stages for child in stage), default=0)
