"""Turns under faults: a short storm, and a judge who can be displeased. `make chaos-turns` is the
long one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from afl.kernel.memory import MemoryStore
from afl.kernel.model import Card, Outcome, Task, TaskSpec
from afl.kernel.rules import card_hash
from afl.testing.clock import SequentialIds, VirtualClock
from afl.turns.cards import Value, write
from afl.turns.journal import ResultStatus, Thought, ToolResult
from afl.turns.model import Deliverable, Ending, ModelRequest, Price, Reply, UserSays
from tests.chaos.server import find_binaries
from tests.chaos.sink import Record
from tests.chaos.turns import Options, enqueue, run
from tests.chaos.turns_judge import End, Tally, TurnVerdict, judge_effects, judge_ends
from tests.chaos.turns_workload import THOUGHTS, TOOL_CALLS, TOOLS, Work, answer

WORKS = [Work(number) for number in range(3)]
SOUND = TurnVerdict(
    turns=500,
    deliverables=500,
    lost=0,
    doubled=0,
    kills=60,
    recovered=200,
    effects=5000,
    attempts=5100,
    seconds=90.0,
    problems=(),
)


def closed_task(outcome: Outcome = Outcome.SUCCESS) -> Task:
    store = MemoryStore(VirtualClock(tick=timedelta(microseconds=1)), SequentialIds())
    (task,) = store.enqueue([TaskSpec("turn", "agent:default")])
    return replace(task, outcome=outcome)


def journal(work: Work, *more: Value) -> list[Card]:
    """What a turn that went well leaves behind, and something more."""
    values: list[Value] = []
    for number in range(THOUGHTS):
        values.append(Thought(number, Reply((), "stop", "m"), Price(0, "p"), "hash"))  # type: ignore[arg-type]
        if number < THOUGHTS - 1:
            values += [
                ToolResult(number, index, f"{number}.{index}", name, "id", ResultStatus.OK, "1")
                for index, name in enumerate(TOOLS)
            ]
    values.append(Deliverable(Ending.DONE, partial=False, fields=work.fields))
    specs = [write(value) for value in (*values, *more)]
    return [Card(card_hash(spec.kind, spec.content), spec.kind, spec.content) for spec in specs]


def sound_ends() -> dict[int, End]:
    return {work.number: End(closed_task(), journal(work), told=1) for work in WORKS}


def sound_records() -> list[Record]:
    return [Record(f"call-{n}", n, "w", 1, True) for work in WORKS for n in work.effects]


def test_the_model_depends_on_nothing_but_the_request() -> None:
    asked = ModelRequest("You tidy.", (UserSays("Tidy room 2."),), (), 100)
    assert answer(asked) == answer(asked)
    numbers = [call.arguments for call in answer(asked).calls]
    assert numbers == [{"n": 2 * TOOL_CALLS}, {"n": 2 * TOOL_CALLS + 1}]
    assert len({n for work in WORKS for n in work.effects}) == len(WORKS) * TOOL_CALLS


def test_what_is_enqueued_twice_is_one_turn() -> None:
    store = MemoryStore(VirtualClock(tick=timedelta(microseconds=1)), SequentialIds())
    errors: list[str] = []
    turns = enqueue(store, WORKS, errors)
    assert errors == []
    assert len(turns) == len(store.find_tasks()) == len(WORKS)


def test_sound_ends_and_effects_please_the_judge() -> None:
    tally = Tally()
    judge_ends(WORKS, sound_ends(), tally)
    # tried twice, but with one effect
    judge_effects(WORKS, [*sound_records(), Record("call-0", 0, "w2", 2, False)], tally)
    assert tally == Tally(deliverables=len(WORKS))


@pytest.mark.parametrize(
    ("end", "lost", "doubled", "complaint"),
    [
        (None, 1, 0, "is not there"),
        (End(closed_task(), journal(WORKS[0])[:-1], 1), 1, 0, "delivers []"),
        (End(closed_task(), journal(WORKS[1]), 1), 1, 0, "delivers [Deliverable"),
        (End(closed_task(), journal(WORKS[0]), 2), 0, 1, "has ended 2 times"),
        (End(closed_task(), journal(WORKS[0])[1:], 1), 0, 0, "thoughts [1, 2, 3, 4, 5]"),
        (End(closed_task(Outcome.PARTIAL), journal(WORKS[0]), 1), 0, 0, "PARTIAL"),
        (
            End(
                closed_task(),
                journal(WORKS[0], Deliverable(Ending.DONE, partial=False, fields=WORKS[0].fields)),
                1,
            ),
            0,
            1,
            "has ended 1 times",
        ),
    ],
)
def test_a_turn_that_ends_otherwise_is_noticed(
    end: End | None, lost: int, doubled: int, complaint: str
) -> None:
    ends = sound_ends()
    del ends[0]
    if end is not None:
        ends[0] = end
    tally = Tally()
    judge_ends(WORKS, ends, tally)
    assert (tally.lost, tally.doubled) == (lost, doubled)
    assert len(tally.problems) == 1
    assert complaint in tally.problems[0]


def test_effects_that_are_doubled_missing_or_strange_are_noticed() -> None:
    records = sound_records()
    for changed, doubled, complaint in (
        ([*records, Record("call-0", 0, "w", 2, True)], 1, "under ['call-0', 'call-0']"),
        ([*records, Record("again", 0, "w", 2, True)], 1, "under ['call-0', 'again']"),
        (records[1:], 0, "1 effects never came, such as 0"),
        ([*records, Record("x", 99, "w", 2, True)], 0, "belong to nobody, such as 99"),
    ):
        tally = Tally()
        judge_effects(WORKS, changed, tally)
        assert tally.doubled == doubled
        assert len(tally.problems) == 1
        assert complaint in tally.problems[0]


def test_a_run_that_is_sound_and_has_seen_faults_is_ok() -> None:
    assert SOUND.ok


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("deliverables", 499),
        ("lost", 1),
        ("doubled", 1),
        ("problems", ("something",)),
        ("recovered", 49),
        ("kills", 19),
    ],
)
def test_a_broken_promise_or_a_missing_fault_is_not_ok(field: str, value: object) -> None:
    assert not replace(SOUND, **{field: value}).ok  # type: ignore[arg-type]


@pytest.mark.slow
def test_no_turn_is_lost_or_doubled_when_workers_are_killed() -> None:
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("there is no PostgreSQL server on this machine")
    verdict = run(Options(turns=60, seconds=18, seed=7), binaries)
    assert verdict.problems == ()
    # a run in which nothing broke would prove nothing
    assert verdict.doubts == []
    assert (verdict.turns, verdict.deliverables) == (60, 60)
    assert (verdict.lost, verdict.doubled) == (0, 0)
    assert verdict.ok
