"""What windows on steps and lists of runs cost on MongoDB: as little in large ones as in small."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from afl.runtime.run_search import RunFilter
from afl.runtime.step import WorkflowId
from afl.runtime.step_windows import StepMatch
from tests.kernel.mongo.profiling import Profile, profiled
from tests.runtime.kept import MongoKept, begin, end, save, step


@pytest.fixture
def kept(mongo_kept: MongoKept) -> MongoKept:
    return mongo_kept


@pytest.fixture
def profile(kept: MongoKept) -> Iterator[Profile]:
    with profiled(kept.database) as made:
        yield made


def _looked_at(profile: Profile, read: Callable[[], object]) -> int:
    """How many entries of indexes and documents a read looks at; it must not sort."""
    known = len(profile.questions())
    read()
    seen = profile.questions()[known:]
    assert seen
    assert not [each["command"] for each in seen if each.get("hasSortStage")]
    return sum(each["keysExamined"] + each.get("docsExamined", 0) for each in seen)


def _foreach(kept: MongoKept, items: int, below: int) -> WorkflowId:
    """A run with a foreach, in each of whose iterations there are so many steps."""
    run = begin(kept)
    paths = ["", "0"]
    for item in range(items):
        paths += [f"0/{item}", *(f"0/{item}/s{number}" for number in range(below))]
    save(kept, *(step(run, path, params={"text": "x" * 100}) for path in paths))
    return run


def test_children_cost_the_same_whatever_is_below_them(kept: MongoKept, profile: Profile) -> None:
    small, large = _foreach(kept, 20, 2), _foreach(kept, 20, 300)
    for run in (small, large):
        assert _looked_at(profile, lambda run=run: kept.store.child_steps(run, "0")) <= 42  # type: ignore[misc]
    page = _looked_at(profile, lambda: kept.store.child_steps(large, "0", after="0/1", limit=5))
    assert page <= 12
    items = [f"0/{item}" for item in range(20)]
    assert _looked_at(profile, lambda: kept.store.have_children(large, ["", "0", *items])) < 100


def test_problems_and_tallies_cost_what_they_are(kept: MongoKept, profile: Profile) -> None:
    run = _foreach(kept, 10, 300)
    error = {"type": "E", "message": "m"}
    save(kept, *(step(run, f"0/{item}/s7", error=error) for item in range(3)))
    assert len(kept.store.problem_steps(run)) == 3
    assert _looked_at(profile, lambda: kept.store.problem_steps(run)) <= 8
    assert _looked_at(profile, lambda: kept.store.tally(run)) <= 20


def test_a_page_of_steps_costs_a_page(kept: MongoKept, profile: Profile) -> None:
    run = _foreach(kept, 10, 300)
    read = kept.store.get_steps_by_workflow
    assert _looked_at(profile, lambda: read(run, after="0/5/s1", limit=50)) <= 102
    match = StepMatch(facet="nobody")
    scan = _looked_at(profile, lambda: kept.store.scan_steps(run, match, after="0/5", most=100))
    assert scan <= 400


def test_lists_of_runs_cost_a_page(kept: MongoKept, profile: Profile) -> None:
    for number in range(60):
        run = begin(
            kept,
            workflow="few" if number % 20 == 0 else "many",
            labels={"env": "prod", "n": str(number % 30)},
            tenant="acme" if number % 20 == 0 else "default",
        )
        if number % 15:
            end(kept, run, "failed" if number % 20 == 0 else "completed")
    for wanted in (
        RunFilter(),
        RunFilter(state="completed"),
        RunFilter(state="created"),
        RunFilter(workflow="few"),
        RunFilter(workflow="many", state="completed"),
        RunFilter(labels={"env": "prod"}),
        RunFilter(labels={"n": "7"}),
        RunFilter(tenant="acme"),
        RunFilter(top_only=True),
        RunFilter(top_only=True, state="completed"),
    ):
        assert kept.store.search_runs(wanted, limit=5), wanted
        cost = _looked_at(profile, lambda wanted=wanted: kept.store.search_runs(wanted, limit=5))  # type: ignore[misc]
        assert cost <= 12, wanted


def test_of_two_labels_the_rarer_one_is_looked_up(kept: MongoKept, profile: Profile) -> None:
    for number in range(30):
        begin(kept, labels={"env": "prod", "n": str(number)})
    for labels in ({"env": "prod", "n": "7"}, {"n": "7", "env": "prod"}):
        assert len(kept.store.search_runs(RunFilter(labels=labels))) == 1
        assert profile.questions()[-1]["docsExamined"] == 1
        assert len(kept.store.find_runs(labels=labels)) == 1
        assert profile.questions()[-1]["docsExamined"] == 1
