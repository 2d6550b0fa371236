"""The review example while workers are killed at commits of its turn. `make crash-turns` kills at
every one of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos.review import Case, Verdict, crash
from tests.chaos.review_fuse import AFTER, BEFORE, Fuse
from tests.chaos.review_judge import Around, Review, differences, faults
from tests.kernel.postgres.databases import server_is_there

SOUND = Review(
    state="completed",
    outputs={"verdict": "approve"},
    transcripts=(("a", "b", "c"),),
    deliverables=1,
    closed_events=1,
    tasks={"review.Review": 1},
    effects={"GetPull": 1, "RunTests": 2, "ReadFile": 1, "style/check": 1, "Merge": 1},
    accounted=3,
)
TOOK = Around(attempts=6, model_requests=3, charged=3)


def verdict_of(*cases: Case) -> Verdict:
    return Verdict(9, TOOK, cases, 60.0)


def test_the_deadly_commit_is_told_once_to_whoever_makes_it(tmp_path: Path) -> None:
    one, other = Fuse(tmp_path / "fuse"), Fuse(tmp_path / "fuse")
    one.arm(2, AFTER)
    assert [one.count("a"), other.count("b"), one.count("c")] == [None, AFTER, None]
    assert (other.read().commits, other.read().has_fired) == (["a", "b", "c"], True)
    other.arm(1)
    assert one.count("d") == BEFORE


def test_a_sound_review_pleases_the_judge() -> None:
    assert faults(SOUND) == []
    assert differences(SOUND, SOUND) == []


@pytest.mark.parametrize(
    "broken",
    [
        replace(SOUND, state="failed"),
        replace(SOUND, outputs=None),
        replace(SOUND, transcripts=(("a", "b", "x"),)),
        replace(SOUND, transcripts=(("a", "b", "c"), ("a", "b", "c"))),
        replace(SOUND, deliverables=2),
        replace(SOUND, closed_events=2),
        replace(SOUND, tasks={"review.Review": 2}),
        replace(SOUND, effects={**SOUND.effects, "Merge": 2}),
        replace(SOUND, accounted=4),
    ],
)
def test_every_difference_is_noticed(broken: Review) -> None:
    assert len(differences(broken, SOUND)) == 1


def test_a_verdict_needs_deaths_and_no_problem() -> None:
    killed = Case(1, BEFORE, "review.Review close", 5.0, TOOK, ())
    assert verdict_of(killed).ok
    assert not verdict_of().ok
    assert not verdict_of(killed, replace(killed, commit="")).ok
    assert not verdict_of(replace(killed, problems=("effects differ",))).ok


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(not server_is_there(), reason="there is no PostgreSQL to test with")
def test_a_review_comes_to_the_same_transcript_and_effects_wherever_its_worker_is_killed() -> None:
    # an answer of the model is lost, one of a tool is lost, and the end is there but untold
    verdict = crash([(2, BEFORE), (4, BEFORE), (9, AFTER)])
    assert verdict.problems == []
    assert (verdict.commits, verdict.kills) == (9, 3)
    lost_answer, lost_result, untold_end = (case.around for case in verdict.cases)
    assert lost_answer.model_requests == verdict.plain.model_requests + 1
    assert lost_result.attempts > verdict.plain.attempts
    assert untold_end.model_requests == verdict.plain.model_requests
    assert verdict.ok
