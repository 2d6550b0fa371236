"""Windows on the steps of a run in both stores: the same as a look at all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from afl.kernel.model import Commit, Continue, TaskId
from afl.runtime.states import ObjectType, StepState
from afl.runtime.step import ROOT, StepDefinition, WorkflowId, is_below, join, parent_of
from afl.runtime.step_windows import StepMatch, StepTimes
from tests.runtime.kept import HOUR, Kept, begin, call, changes, claim, end, flow, save, step

#: Names that come before and after the slash, begin with one another, or mean something elsewhere.
NAMES = (
    *("a", "ab", "a#script", "a-b", "a!", "a.b", "a0", "a/", "A", "with", "ä", "日本", "😀"),
    *("0", "1", "10", "2", "00", "case-0", "catch", "facet-catch", "%", "_", "q\"'\\{,}", "a b"),
)
STATES = (StepState.CREATED, StepState.EVENT_TRANSMIT, StepState.STATEMENT_COMPLETE)
FACETS = ("", "ns.Pay", "ns.Send")


def _tree(run: WorkflowId, rng: Random, count: int) -> list[StepDefinition]:
    """Steps below each other, with names of all kinds."""
    paths = [ROOT]
    while len(paths) < count:
        above = rng.choice(paths[-20:])
        name = rng.choice([each for each in NAMES if each not in ("a/", "with")])
        path = join(above, *(("with", name) if rng.random() < 0.1 else (name,)))
        if path not in paths:
            paths.append(path)
    return [_step(run, path, rng) for path in paths]


def _step(run: WorkflowId, path: str, rng: Random) -> StepDefinition:
    kind = {"state": rng.choice(STATES), "facet_name": rng.choice(FACETS)}
    made = step(run, path, **kind, statement_id=rng.choice(("s1", "s2", "s3")))
    if rng.random() < 0.2:
        made.mark_error({"type": "E", "message": rng.choice(("Disk full", "50% of it_"))})
    return made


def _kept_tree(kept: Kept, seed: str, count: int = 120) -> tuple[WorkflowId, list[StepDefinition]]:
    """A run with steps, in the order of their paths."""
    run = begin(kept)
    steps = _tree(run, Random(seed), count)
    save(kept, *steps)
    save(kept, *_tree(begin(kept), Random("another"), 30))
    return run, sorted(steps, key=lambda each: each.path)


def _pages(read: Callable[..., list[StepDefinition]]) -> list[StepDefinition]:
    """Everything that `read` finds, page after page."""
    seen: list[StepDefinition] = []
    while page := read(after=seen[-1].path if seen else None):
        seen += page
    return seen


@pytest.mark.parametrize("seed", range(4))
def test_children_are_those_that_stand_right_in_a_step(kept: Kept, seed: int) -> None:
    run, steps = _kept_tree(kept, f"children {seed}")
    for parent in steps:
        at = parent.path
        children = [each for each in steps if each.path and parent_of(each.path) == at]
        assert kept.store.child_steps(run, at) == children, at
        assert kept.store.child_steps(run, at, limit=2) == children[:2], at
        read = partial(kept.store.child_steps, run, at, limit=3)
        assert _pages(read) == children, at
    paths = [each.path for each in steps]
    assert kept.store.have_children(run, [*paths, "nothing"]) == {
        path for path in paths if any(is_below(each, path) for each in paths)
    }


def test_names_that_begin_with_one_another(kept: Kept) -> None:
    run = begin(kept)
    names = ["a", "a!", "a#script", "a-b", "a.b", "a0", "ab", "b"]
    below = ["a!/1", "a#script/x", "a/0", "a/0/deep/er", "a/z", "ab/0"]
    save(kept, *(step(run, path) for path in ["", *names, *below]))
    assert [each.path for each in kept.store.child_steps(run, ROOT)] == names
    assert [each.path for each in kept.store.child_steps(run, "a")] == ["a/0", "a/z"]
    assert [each.path for each in kept.store.child_steps(run, ROOT, after="a")] == names[1:]
    assert kept.store.have_children(run, names) == {"a", "a!", "a#script", "ab"}


def test_mixins_stand_in_what_they_are_mixed_into(kept: Kept) -> None:
    run = begin(kept)
    paths = ["", "with/m", "with/m/0", "0", "0/p", "0/p/with/k", "0/p/with/m/0/y", "0/p/with/m"]
    save(kept, *(step(run, path) for path in paths))
    assert [each.path for each in kept.store.child_steps(run, ROOT)] == ["0", "with/m"]
    assert [each.path for each in kept.store.child_steps(run, "0/p")] == [
        "0/p/with/k",
        "0/p/with/m",
    ]
    assert kept.store.have_children(run, paths) == {"", "with/m", "0", "0/p", "0/p/with/m"}


def test_a_large_foreach(kept: Kept) -> None:
    run = begin(kept)
    items = [f"0/{number}" for number in range(2000)]
    inner = [f"{item}/{name}" for item in items for name in ("s", "yield-0")]
    save(kept, *(step(run, path) for path in ["", "0", *items, *inner]))
    read = partial(kept.store.child_steps, run, "0")
    assert [each.path for each in _pages(read)] == sorted(items)
    assert kept.store.have_children(run, items[:300]) == set(items[:300])
    assert kept.store.have_children(run, inner[:300]) == set()
    assert len(kept.store.child_steps(run, "0/1999")) == 2


def test_what_is_deep(kept: Kept) -> None:
    run = begin(kept)
    paths = [ROOT]
    for depth in range(80):
        paths.append(join(paths[-1], depth % 3, "s"))
        paths.append(join(paths[-2], depth % 3))
    save(kept, *(step(run, path) for path in paths))
    for path in paths:
        expected = sorted(each for each in paths if each and parent_of(each) == path)
        assert [each.path for each in kept.store.child_steps(run, path)] == expected


def test_problems_are_the_steps_with_an_error(kept: Kept) -> None:
    run, steps = _kept_tree(kept, "problems")
    failed = [each for each in steps if each.error is not None]
    assert len(failed) > 10
    assert kept.store.problem_steps(run) == failed
    assert _pages(partial(kept.store.problem_steps, run, limit=4)) == failed
    mended = failed[0].clone()
    mended.error, mended.state = None, StepState.STATEMENT_COMPLETE
    save(kept, mended)
    assert kept.store.problem_steps(run) == failed[1:]


MATCHES = (
    StepMatch(),
    StepMatch(states=frozenset((StepState.STATEMENT_ERROR,))),
    StepMatch(states=frozenset((StepState.CREATED, StepState.EVENT_TRANSMIT)), facet="ns.Pay"),
    StepMatch(states=frozenset()),
    StepMatch(facet="nobody"),
    StepMatch(statement="s2"),
    StepMatch(statement="s1", states=frozenset((StepState.STATEMENT_ERROR,))),
    StepMatch(statement=""),
    StepMatch(text="DISK"),
    StepMatch(text="%"),
    StepMatch(text="ns.s", states=frozenset((StepState.CREATED,))),
    StepMatch(text="日本"),
    StepMatch(text=""),
)


@pytest.mark.parametrize("match", MATCHES)
@pytest.mark.parametrize(("limit", "most"), [(200, 20_000), (5, 20_000), (5, 17), (1, 1)])
def test_a_scan_goes_on_until_the_end(kept: Kept, match: StepMatch, limit: int, most: int) -> None:
    run, steps = _kept_tree(kept, "scan", 60)
    seen: list[StepDefinition] = []
    after: str | None = None
    for _ in range(2 * len(steps) + 2):
        found, after = kept.store.scan_steps(run, match, after=after, limit=limit, most=most)
        assert len(found) <= limit
        seen += found
        if after is None:
            break
    assert after is None
    assert seen == [each for each in steps if match.fits(each)]


def test_a_scan_says_where_it_stopped(kept: Kept) -> None:
    run = begin(kept)
    save(kept, *(step(run, f"0/{number}") for number in range(8)))
    nothing = StepMatch(facet="nobody")
    assert kept.store.scan_steps(run, nothing, most=3) == ([], "0/2")
    assert kept.store.scan_steps(run, nothing, after="0/2", most=5) == ([], "0/7")
    assert kept.store.scan_steps(run, nothing, after="0/7", most=5) == ([], None)


def test_the_times_of_steps(kept: Kept) -> None:
    run = begin(kept)
    save(kept, step(run, "0"), step(run, "1", state=StepState.STATEMENT_COMPLETE))
    first = kept.store.step_times(run, ["0", "1", "2"])
    assert set(first) == {"0", "1"}
    assert first["0"] == StepTimes(first["0"].created_at, first["0"].created_at, None)
    assert first["1"].ended_at == first["1"].created_at
    kept.advance(HOUR)
    save(kept, *(step(run, path, state=StepState.STATEMENT_COMPLETE) for path in ("0", "1")))
    later = kept.store.step_times(run, ["0", "1"])
    for path in ("0", "1"):
        assert later[path].created_at == first[path].created_at
        assert later[path].changed_at >= first[path].created_at + HOUR
    assert later["0"].ended_at == later["0"].changed_at
    assert later["1"].ended_at == first["1"].ended_at


def test_the_mark_of_a_run_changes_with_it(kept: Kept) -> None:
    run, other = begin(kept), begin(kept)
    marks = [kept.store.change_mark(run)]
    assert kept.store.change_mark(run) == marks[0]

    def is_new() -> bool:
        marks.append(kept.store.change_mark(run))
        return marks[-1] not in marks[:-1] and kept.store.change_mark(run) == marks[-1]

    held = claim(kept)
    assert held.task.id == TaskId(run)
    assert is_new(), "its task was taken"
    made = changes(step(run, "", object_type=ObjectType.WORKFLOW))
    kept.store.kernel.commit(
        [Commit(held.fence, Continue())],
        writes=lambda transaction: kept.store.write_changes(transaction, run, made),
    )
    assert is_new(), "it has a step"
    kept.store.set_pause(run, True)
    assert is_new(), "it is to pause"
    end(kept, other)
    assert not is_new(), "another run has ended"
    end(kept, run)
    assert is_new(), "it has ended"


def test_the_mark_of_a_run_changes_with_the_tasks_it_waits_for(kept: Kept) -> None:
    run = begin(kept)
    before = kept.store.change_mark(run)
    call(kept, "0/pay")
    waiting = kept.store.change_mark(run)
    assert waiting != before
    taken = kept.store.claim_task(["ns.Pay"])
    assert taken is not None
    assert kept.store.change_mark(run) not in (waiting, before)


def test_a_run_that_is_not_there_has_no_windows(kept: Kept) -> None:
    for run in (flow(kept), WorkflowId("no id")):
        assert kept.store.child_steps(run, ROOT) == []
        assert kept.store.have_children(run, ["", "0"]) == set()
        assert kept.store.problem_steps(run) == []
        assert kept.store.scan_steps(run, StepMatch()) == ([], None)
        assert kept.store.step_times(run, ["0"]) == {}
        assert kept.store.tally(run) == []
        assert kept.store.tallies([run]) == {}
        assert kept.store.change_mark(run) == kept.store.change_mark(run)
