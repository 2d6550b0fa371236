"""Flows survive crashes, pauses, lost answers and zombies: a few hundred schedules of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from afl.runtime import context
from afl.testing.flow_simulation import FlowSimulation, Plan, Result, run_schedule, shrink
from afl.testing.flow_simulation.answers import EVENTS, FLAKY, answer
from afl.testing.flow_simulation.cases import NotAccepted, case_of, text_of
from afl.testing.flow_simulation.expected import Expected, Row, Status
from afl.testing.simulation.ledger import Violation
from tests.architecture.repository import ROOT
from tests.sim.flows import describe, main
from tests.sim.flows_campaign import FAULTS, MUTANT_SCHEDULES, Totals, run_chunk
from tests.sim.flows_mutants import MUTANTS, Mutant, first_kill

SCHEDULES = 400
PARTS = 4
PROGRAMS = 120
CALM = frozenset[str]()


def program(*lines: str) -> str:
    """A program whose `Main` has these lines below its signature."""
    head = (
        "event facet Ask(a: Int, b: Int = 2) => (v: Int, vs: [Int])",
        "event facet Get(a: Int) => (v: Int, vs: [Int])",
        "facet Open(a: Int) => (v: Int = 0, vs: [Int] = [])",
        "workflow Main(a: Int = 1) => (v: Int = 0, vs: [Int] = [])",
    )
    return "\n".join(("namespace sim {", *head, *lines, "}")) + "\n"


def argument_for(facet: str, *, fails: bool) -> int:
    """A number with which a facet fails, or does not."""
    for number in range(1000):
        params = {"a": number, "b": 2} if facet == "sim.Ask" else {"a": number}
        found = answer(facet, params)
        if fails == (found.result is None) and (fails or isinstance(_number(facet, number), int)):
            return number
    raise AssertionError(facet)


def _number(facet: str, argument: int) -> object:
    params = {"a": argument, "b": 2} if facet == "sim.Ask" else {"a": argument}
    return (answer(facet, params).result or {}).get("v")


GOOD, BAD = argument_for("sim.Get", fails=False), argument_for("sim.Get", fails=True)


def statuses(expected: Expected) -> dict[str, str]:
    return {path: row.status.value for path, row in expected.rows.items()}


def trace_of(plan: Plan) -> tuple[Result, list[str]]:
    lines: list[str] = []
    return run_schedule(plan, trace=lines.append), lines


# The simulation


@pytest.mark.parametrize("part", range(PARTS))
def test_every_run_comes_to_what_it_should_under_faults(part: int) -> None:
    share = SCHEDULES // PARTS
    totals = run_chunk(part * share, (part + 1) * share)
    assert totals.schedules == share
    found = [describe(shrink(failure, run_schedule)) for failure in totals.failures[:1]]
    assert found == []
    # a run in which nothing went wrong would prove nothing
    assert list(totals.doubts()) == []


def test_without_faults_nothing_is_refused() -> None:
    for seed in range(0, 200, 4):
        result = run_schedule(Plan(seed, only=CALM))
        assert result.rule is None, describe(result)
        assert result.tape == ()
        assert result.counts.stale_writes_refused == 0
        assert result.counts.tasks_recovered == 0


def test_a_seed_is_the_same_schedule_every_time() -> None:
    for seed in range(0, 40, 5):
        first, second = trace_of(Plan(seed)), trace_of(Plan(seed))
        assert first == second
        assert len(first[1]) >= 10


def test_only_the_faults_of_the_plan_happen() -> None:
    full = next(r for r in (run_schedule(Plan(seed)) for seed in range(50)) if len(r.tape) > 3)
    kept = frozenset(entry.id for entry in full.tape[:2])
    some = run_schedule(Plan(full.plan.seed, only=kept))
    assert {entry.id for entry in some.tape} == kept


def test_the_size_of_commits_is_put_back() -> None:
    before = context.STEPS_PER_ITERATION
    for seed in range(6):
        run_schedule(Plan(seed))
    assert before == context.STEPS_PER_ITERATION


def test_a_campaign_that_proves_nothing_says_so() -> None:
    empty = list(Totals().doubts())
    assert "stale_writes_refused is 0" in empty
    assert len([doubt for doubt in empty if doubt.startswith("there was no")]) == len(FAULTS)


# Mutants


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_found_out(mutant: Mutant) -> None:
    result = first_kill(mutant, MUTANT_SCHEDULES)
    assert result is not None, f"'{mutant.name}' survived {MUTANT_SCHEDULES} schedules"
    # it is the mutant that fails there, not the schedule
    assert run_schedule(Plan(result.plan.seed)).rule is None


def test_every_mutant_has_its_own_name() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_a_failing_schedule_shrinks_and_fails_in_the_same_way() -> None:
    (mutant,) = (mutant for mutant in MUTANTS if mutant.name == "no fence")
    failed = first_kill(mutant, MUTANT_SCHEDULES)
    assert failed is not None
    with mutant.simulation() as simulation:
        small = shrink(failed, lambda plan: run_schedule(plan, simulation))
        again = run_schedule(small.plan, simulation)
    assert small.rule == failed.rule
    assert len(small.plan.program) < len(failed.plan.program)
    assert len(small.tape) < len(failed.tape)
    assert (again.rule, again.failure, again.tape) == (small.rule, small.failure, small.tape)
    assert f"--seed {failed.plan.seed} --only" in describe(small)


def test_a_run_that_never_ends_is_a_failure() -> None:
    class Nobody(FlowSimulation):
        def _add_worker(self, name: str) -> None:
            pass

    result = run_schedule(Plan(0), Nobody)
    assert result.rule == Violation("everything ends", "").rule


# Programs


def _all(expected: Expected) -> Iterator[Expected]:
    yield expected
    for child in expected.children.values():
        yield from _all(child)


def test_programs_have_everything_that_must_be_tried() -> None:
    cases = [case_of(text_of(number)) for number in range(PROGRAMS)]
    texts = [case.text for case in cases]
    runs = [run for case in cases for run in _all(case.expected)]
    rows: list[tuple[str, Row]] = [item for run in runs for item in run.rows.items()]
    for wanted in (
        *("andThen foreach", " limit 1 {", "andThen when", "catch when", "sys.assert", "after s"),
        *("workflow Child", "facet Part", "as mixed", "facet Down", "= Pair(", "afl.time.Sleep"),
    ):
        assert any(wanted in text for text in texts), wanted
    for name in ("catch", "facet-catch"):
        ends = {row.status for path, row in rows if path.rpartition("/")[2] == name}
        assert ends >= {Status.COMPLETE, Status.FAILED}, name
    assert {row.status for _, row in rows} == set(Status)
    assert {run.status for run in runs} >= {Status.COMPLETE, Status.FAILED}
    failed = sum(case.expected.status is not Status.COMPLETE for case in cases)
    assert PROGRAMS / 20 < failed < PROGRAMS / 2
    assert any(run.children for run in runs)
    assert any(run.limits for run in runs)


def test_answers_are_a_pure_function_and_some_are_failures() -> None:
    for facet in EVENTS:
        found = [answer(facet, {"a": number}) for number in range(400)]
        assert found == [answer(facet, {"a": number}) for number in range(400)]
        assert 0.05 < sum(each.result is None for each in found) / 400 < 0.2
        assert any(each.hiccups for each in found) == (facet == FLAKY)


# The reference, by hand


def test_a_failed_step_skips_exactly_those_that_need_it() -> None:
    expected = case_of(
        program(
            "andThen {",
            f"  bad = Get(a = {BAD})",
            "  needs = Get(a = bad.v)",
            "  too = Get(a = needs.v)",
            f"  free = Get(a = {GOOD})",
            "}",
        )
    ).expected
    found = statuses(expected)
    assert (found["0/bad"], found["0/needs"], found["0/too"]) == ("failed", "skipped", "skipped")
    assert found["0/free"] == "complete"
    assert (found["0"], found[""]) == ("failed", "failed")
    assert expected.events == {"0/bad", "0/free"}


def test_a_catch_takes_the_place_of_what_it_guards() -> None:
    expected = case_of(
        program(
            "andThen {",
            "  yield Main(vs = [1])",
            f"  bad = Get(a = {BAD})",
            "} catch {",
            "  yield Main(vs = [2])",
            "}",
            "andThen foreach x in [7, 8] {",
            "  yield Main(vs = [$.x])",
            "}",
        )
    ).expected
    assert expected.outputs == {"v": 0, "vs": [2, 7, 8]}
    assert statuses(expected)["0/catch"] == "complete"


def test_the_catch_of_the_step_runs_when_its_body_fails() -> None:
    expected = case_of(
        program(
            "andThen {",
            "  s = Open(a = 1)",
            "    catch {",
            "      yield Open(v = 5)",
            "    }",
            "    andThen {",
            "      yield Main(vs = [1])",
            f"      bad = Get(a = {BAD})",
            "    }",
            "  yield Main(v = s.v ?? 0)",
            "}",
        )
    ).expected
    assert expected.outputs == {"v": 5, "vs": []}
    assert expected.rows["0/s"].returns == {"v": 5, "vs": []}


def test_what_needs_a_failure_that_was_caught_elsewhere_fails_its_owner() -> None:
    expected = case_of(
        program(
            "andThen {",
            f"  bad = Get(a = {BAD})",
            "} catch {",
            "}",
            "andThen {",
            "  yield Main(v = bad.v)",
            "}",
        )
    ).expected
    assert statuses(expected)["1"] == "skipped"
    assert expected.status is Status.FAILED
    assert expected.error is not None
    assert expected.error["step"] == "0/bad"


def test_an_end_that_hangs_on_what_fails_first_is_told() -> None:
    worse = next(n for n in range(BAD + 1, 1000) if answer("sim.Get", {"a": n}).result is None)
    text = program(
        "andThen {",
        f"  one = Get(a = {BAD})",
        f"  two = Get(a = {worse})",
        "} catch {",
        "}",
        "andThen {",
        "  yield Main(v = one.v + two.v)",
        "}",
    )
    assert case_of(text).expected.ambiguous


def test_what_is_not_a_program_is_refused() -> None:
    with pytest.raises(NotAccepted):
        case_of("namespace sim { facet }")
    with pytest.raises(NotAccepted):
        case_of("namespace sim { schema Pair { v: Int } }")


# The command


def test_a_campaign_ends_with_its_figures() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.sim.flows", "--schedules", "20", "--mutant", "no limit"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert (figures["schedules"], figures["programs"], figures["failures"]) == (20, 4, 0)
    assert figures["mutants_killed"] == figures["mutants"] == 1
    assert figures["schedules_per_second"] > 0


def test_one_schedule_is_told_step_by_step(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    saved = tmp_path / "program.afl"
    saved.write_text(program("andThen {", f"  s = Get(a = {GOOD})", "}"))
    assert main(["--seed", "0", "--only", "", "--program", str(saved)]) == 0
    out = capsys.readouterr().out
    assert "w1         register w1.1" in out
    assert out.endswith("seed 0: all promises kept\n")
