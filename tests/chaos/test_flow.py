"""Flows under faults: a short storm, and a judge who can be displeased. `make chaos-flow` is the
long one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from afl.runtime.states import RunState
from tests.chaos.flow import Options, run
from tests.chaos.flow_judge import End, FlowVerdict, judge_effects, judge_ends
from tests.chaos.flow_workload import KINDS, Flow, breaks, stumbles
from tests.chaos.mongo_server import find_mongod
from tests.chaos.server import find_binaries
from tests.chaos.sink import Record

FLOWS = [Flow(number) for number in range(4 * len(KINDS))]
SOUND = FlowVerdict(
    flows=1000,
    lost=0,
    duplicate_effects=0,
    wrong_outputs=0,
    kills=50,
    stops=20,
    failovers=0,
    recovered=100,
    stale_refused=20,
    stale_accepted=0,
    acknowledged_lost=0,
    effects=3600,
    attempts=3800,
    seconds=90.0,
    problems=(),
)


def end_of(flow: Flow) -> End:
    if flow.outputs is None:
        return (RunState.FAILED, None, {"type": "Broken", "message": "it fails"})
    return (RunState.COMPLETED, flow.outputs, None)


def sound_ends() -> dict[str, list[End]]:
    return {flow.key: [end_of(flow)] for flow in FLOWS}


def sound_records() -> list[Record]:
    return [Record(f"step-{n}", n, "w", 1, True) for flow in FLOWS for n in flow.effects]


def test_the_work_has_every_kind_of_failure() -> None:
    assert {flow.kind for flow in FLOWS} == set(KINDS)
    assert len({n for flow in FLOWS for n in flow.effects}) == sum(len(f.effects) for f in FLOWS)
    of_kind = {kind: [flow for flow in FLOWS if flow.kind == kind] for kind in KINDS}
    assert {flow.outputs is None for flow in of_kind["Uncaught"]} == {True, False}
    assert {breaks(flow.effects[0]) for flow in of_kind["Caught"]} == {True, False}
    for kind in ("Sequence", "Join", "Nested"):
        flows = [Flow(number) for number in range(60) if Flow(number).kind == kind]
        assert {stumbles(flow.effects[0]) for flow in flows} == {0, 2}


def test_sound_ends_and_effects_please_the_judge() -> None:
    problems: list[str] = []
    assert judge_ends(FLOWS, sound_ends(), problems) == (0, 0)
    # tried twice, but with one effect
    records = [*sound_records(), Record("step-0", 0, "w2", 2, False)]
    assert judge_effects(FLOWS, records, problems) == 0
    assert problems == []


@pytest.mark.parametrize(
    ("runs", "lost", "wrong", "complaint"),
    [
        ([], 1, 0, "is not there"),
        ([(RunState.RUNNING, None, None)], 1, 0, "is running"),
        ([(RunState.COMPLETED, {"n": 3}, None)], 0, 1, r"is completed: {'n': 3}"),
        ([(RunState.FAILED, None, {"type": "Crashed"})], 0, 1, "Crashed"),
        ([end_of(FLOWS[0])] * 2, 0, 0, "has become 2 runs"),
    ],
)
def test_a_flow_that_ends_otherwise_is_noticed(
    runs: Sequence[End], lost: int, wrong: int, complaint: str
) -> None:
    problems: list[str] = []
    ends = {**sound_ends(), FLOWS[0].key: list(runs)}
    assert judge_ends(FLOWS, ends, problems) == (lost, wrong)
    assert len(problems) == 1
    assert complaint in problems[0]


def test_a_run_that_should_have_failed_with_another_error_is_wrong() -> None:
    problems: list[str] = []
    failing = next(flow for flow in FLOWS if flow.outputs is None)
    for end in ((RunState.COMPLETED, {"n": 1}, None), (RunState.FAILED, None, {"type": "Other"})):
        ends = {**sound_ends(), failing.key: [end]}
        assert judge_ends(FLOWS, ends, problems) == (0, 1)


def test_effects_that_are_doubled_missing_or_strange_are_noticed() -> None:
    records = sound_records()
    for changed, doubled, complaint in (
        ([*records, Record("step-0", 0, "w", 2, True)], 1, "under ['step-0', 'step-0']"),
        ([*records, Record("step-again", 0, "w", 2, True)], 1, "under ['step-0', 'step-again']"),
        (records[1:], 0, "1 effects never came, such as 0"),
        ([*records, Record("step-x", 99, "w", 2, True)], 0, "belong to nobody, such as 99"),
    ):
        problems: list[str] = []
        assert judge_effects(FLOWS, changed, problems) == doubled
        assert len(problems) == 1
        assert complaint in problems[0]


def test_a_run_that_is_sound_and_has_seen_faults_is_ok() -> None:
    assert SOUND.ok


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("lost", 1),
        ("duplicate_effects", 1),
        ("wrong_outputs", 1),
        ("stale_accepted", 1),
        ("acknowledged_lost", 1),
        ("problems", ("something",)),
        ("stale_refused", 9),
        ("recovered", 49),
        ("kills", 19),
        ("stops", 0),
    ],
)
def test_a_broken_promise_or_a_missing_fault_is_not_ok(field: str, value: object) -> None:
    values = {name: getattr(SOUND, name) for name in FlowVerdict.__slots__}
    assert not FlowVerdict(**{**values, field: value}).ok


def _weather(store: str, program: Path | None, flows: int) -> None:
    if program is None:
        pytest.skip(f"there is no server of {store} on this machine")
    for seed in (7, 8, 9):
        options = Options(flows=flows, seconds=14, workers=5, seed=seed, store=store)
        verdict = run(options, program)
        assert verdict.problems == ()
        assert verdict.kills >= 3
        assert (verdict.flows, verdict.lost, verdict.duplicate_effects) == (flows, 0, 0)
        assert (verdict.wrong_outputs, verdict.stale_accepted) == (0, 0)
        # a run in which nothing broke would prove nothing: then another one has to
        if not verdict.doubts:
            break
    assert verdict.ok
    assert (verdict.failovers > 0) == (store == "mongo")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_nothing_is_lost_or_doubled_when_workers_are_killed() -> None:
    _weather("postgres", find_binaries(), flows=100)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_is_lost_or_doubled_when_a_replica_set_loses_its_primary() -> None:
    _weather("mongo", find_mongod(), flows=60)
