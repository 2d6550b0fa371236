"""Steps, waits and log lines in both stores."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta

import pytest

from afl.kernel.errors import Fenced
from afl.kernel.model import Commit, Continue, Fence, Suspend
from afl.kernel.port import Transaction
from afl.runtime.persistence import Loaded, LogLine, Needed, Wait
from afl.runtime.states import ObjectType, StepState
from afl.runtime.step import StepDefinition, StepId, WorkflowId
from tests.runtime.kept import Kept, begin, changes, claim, flow, save, step, write

PATHS = ["", "0", "0/a", "0/a/0/y", "0/Z", "0/ä", "0/日本", "0/😀", '0/q"\\{,}', "10", "2", "0/a-b"]


def full_step(run: WorkflowId) -> StepDefinition:
    """A step in which every field has a value of its own."""
    return StepDefinition(
        workflow_id=run,
        path="0/full",
        object_type=ObjectType.YIELD_ASSIGNMENT,
        statement_id="w/0/full",
        facet_name="ns.Pay",
        state=StepState.STATEMENT_ERROR,
        params={"a": [1, {"b": None}], "text": 'ä"\\\n{}', "zero": 0},
        returns={"r": 1.5, "big": 2**70},
        error={"type": "E", "message": "m", "step": "0/x"},
        skipped_because="0/other",
        yields_to="0",
        frame={"open": 3, "waits": ["x"]},
    )


def test_every_field_comes_back(kept: Kept) -> None:
    run = begin(kept)
    given = full_step(run)
    bare = step(run, "", object_type="", statement_id="")
    same = [
        f.name for f in fields(StepDefinition) if getattr(given, f.name) == getattr(bare, f.name)
    ]
    assert same == ["workflow_id"], "the sample must have a value for every field"
    save(kept, given)
    assert kept.store.get_step(given.id) == given


def test_an_update_replaces_every_field(kept: Kept) -> None:
    run = begin(kept)
    save(kept, full_step(run))
    bare = step(run, "0/full")
    made = changes()
    made.add_updated_step(bare)
    write(kept, lambda transaction: kept.store.write_changes(transaction, run, made))
    assert kept.store.get_step(bare.id) == bare
    save(kept, full_step(run))
    assert kept.store.get_step(bare.id) == full_step(run)


def test_the_same_changes_twice_are_the_same(kept: Kept) -> None:
    run = begin(kept)
    made = changes(full_step(run), step(run, ""))
    made.waits.append(Wait("0/full", "1"))
    for _ in range(2):
        write(kept, lambda transaction: kept.store.write_changes(transaction, run, made))
    needed = Needed(frozenset(PATHS), frozenset(["0"]), frozenset(["0/full"]))
    assert kept.store.load(run, needed) == Loaded(
        {"": step(run, "")}, {"0": [full_step(run)]}, {"0/full": ["1"]}
    )


def test_no_changes_are_no_mistake(kept: Kept) -> None:
    run = begin(kept)
    write(kept, lambda transaction: kept.store.write_changes(transaction, run, changes()))
    write(kept, lambda transaction: kept.store.write_many(transaction, []))
    assert kept.store.get_steps_by_workflow(run) == []


def test_steps_are_copied_on_their_way_in_and_out(kept: Kept) -> None:
    run = begin(kept)
    given = step(run, "0/a", params={"x": 1})
    save(kept, given)
    given.params["x"] = 2
    given.state = StepState.STATEMENT_COMPLETE
    found = kept.store.get_step(given.id)
    assert found is not None
    assert (found.params, found.state) == ({"x": 1}, StepState.CREATED)
    found.params["x"] = 3
    found.frame["n"] = 1
    assert kept.store.get_step(given.id) == step(run, "0/a", params={"x": 1})


def test_what_is_asked_for_and_not_there_is_left_out(kept: Kept) -> None:
    run, other = begin(kept), begin(kept)
    save(kept, step(other, "0/a", yields_to="0"))
    asked = Needed(frozenset(["0/a"]), frozenset(["0", "0/a"]), frozenset(["0/a"]))
    for each in (run, flow(kept), WorkflowId("no id at all")):
        assert kept.store.load(each, asked) == Loaded()
    assert kept.store.load(other, Needed()) == Loaded()
    assert kept.store.get_step(StepId(f"{run}:0/a")) is None
    assert kept.store.get_step(StepId("nonsense")) is None


def test_yields_and_waits_are_found_by_their_targets_in_order(kept: Kept) -> None:
    run = begin(kept)
    yields = [step(run, path, yields_to="0/a") for path in ("1/y", "0/y", "0/ü", "10/y")]
    made = changes(*yields, step(run, "0/z", yields_to=""), step(run, "0/n"))
    made.waits += [Wait("0/a", "3"), Wait("0/a", "1"), Wait("0/ü", "2")]
    write(kept, lambda transaction: kept.store.write_changes(transaction, run, made))
    found = kept.store.load(run, Needed(yields=frozenset(["0/a", ""]), waits=frozenset(["0/a"])))
    assert [each.path for each in found.yields["0/a"]] == ["0/y", "0/ü", "1/y", "10/y"]
    assert [each.path for each in found.yields[""]] == ["0/z"]
    assert (found.waits, found.steps) == ({"0/a": ["1", "3"]}, {})


def test_steps_are_listed_in_the_order_of_the_bytes_of_their_paths(kept: Kept) -> None:
    run = begin(kept)
    save(kept, *(step(run, path) for path in PATHS))
    save(kept, step(begin(kept), "0/elsewhere"))
    expected = sorted(PATHS, key=str.encode)

    def paths(after: str | None = None, limit: int | None = None) -> list[str]:
        found = kept.store.get_steps_by_workflow(run, after=after, limit=limit)
        return [each.path for each in found]

    assert paths() == expected
    assert paths(after="") == expected[1:]
    assert paths(after="0/a", limit=2) == expected[expected.index("0/a") + 1 :][:2]
    assert paths(after="zzz") == []
    by_state = kept.store.get_steps_by_state(run, StepState.CREATED, limit=3)
    assert [each.path for each in by_state] == expected[:3]


@pytest.mark.parametrize("path", PATHS)
def test_any_path_is_found_again(kept: Kept, path: str) -> None:
    run = begin(kept)
    save(kept, step(run, path, yields_to=path, skipped_because=path))
    found = kept.store.load(run, Needed(frozenset([path]), frozenset([path])))
    assert (
        found.steps[path] == found.yields[path][0] == kept.store.get_step(StepId(f"{run}:{path}"))
    )


def test_states_are_counted(kept: Kept) -> None:
    run = begin(kept)
    done = [step(run, f"0/{n}", state=StepState.STATEMENT_COMPLETE) for n in range(3)]
    save(kept, *done, step(run, ""))
    assert kept.store.count_steps(run) == {StepState.STATEMENT_COMPLETE: 3, StepState.CREATED: 1}
    found = kept.store.get_steps_by_state(run, StepState.STATEMENT_COMPLETE)
    assert [each.path for each in found] == ["0/0", "0/1", "0/2"]
    assert kept.store.count_steps(flow(kept)) == {}


def test_large_values_come_back(kept: Kept) -> None:
    run = begin(kept)
    large = {"text": "ä\\\"'" * 250_000, "list": list(range(50_000))}
    given = step(run, "0/large", params=large, returns=large)
    save(kept, given)
    given.mark_completed()
    save(kept, given)
    assert kept.store.get_step(given.id) == given


def test_log_lines_come_back_in_their_order(kept: Kept) -> None:
    run = begin(kept)
    for first in (0, 3):
        made = changes()
        made.logs += [LogLine(f"0/{n}", {"n": n, "ü": ["x"]}) for n in range(first, first + 3)]
        write(kept, lambda tx, made=made: kept.store.write_changes(tx, run, made))  # type: ignore[misc]
    expected = [LogLine(f"0/{n}", {"n": n, "ü": ["x"]}) for n in range(6)]
    assert kept.store.get_logs(run) == expected
    assert kept.store.get_logs(run, limit=4) == expected[:4]
    assert kept.store.get_logs(flow(kept)) == []


def test_many_runs_are_written_at_once(kept: Kept) -> None:
    runs = [begin(kept) for _ in range(3)]
    made = [(run, changes(step(run, ""), step(run, "0/y", yields_to=""))) for run in runs]
    for _, each in made:
        each.waits.append(Wait("0/y", "1"))
        each.logs.append(LogLine("0/l", {}))
    later = changes()
    later.add_updated_step(step(runs[0], "", state=StepState.STATEMENT_COMPLETE))
    write(kept, lambda tx: kept.store.write_many(tx, [*made, (runs[0], later)]))
    needed = Needed(frozenset([""]), frozenset([""]), frozenset(["0/y"]))
    for run in runs:
        loaded = kept.store.load(run, needed)
        assert [each.path for each in loaded.yields[""]] == ["0/y"]
        assert loaded.waits == {"0/y": ["1"]}
        assert loaded.steps[""].workflow_id == run
        assert loaded.steps[""].is_complete is (run == runs[0])
        assert len(kept.store.get_logs(run)) == 1


def test_changes_are_part_of_the_commit_of_the_flow(kept: Kept) -> None:
    run = begin(kept)
    held = claim(kept)
    made = changes(step(run, "0/a"))

    def writes(transaction: Transaction) -> None:
        kept.store.write_changes(transaction, run, made)
        kept.store.start_run(transaction, run)

    for _ in range(2):
        kept.store.kernel.commit([Commit(held.fence, Suspend())], writes=writes)
    assert kept.store.get_step(StepId(f"{run}:0/a")) == step(run, "0/a")
    found = kept.store.get_run(run)
    assert found is not None
    assert found.state == "running"


def test_a_lost_fence_leaves_no_trace(kept: Kept) -> None:
    run = begin(kept)
    held = claim(kept)
    made = changes(step(run, "0/a", yields_to=""))
    made.waits.append(Wait("0/a", "1"))
    made.logs.append(LogLine("0/l", {}))
    stale = Commit(Fence(held.fence + 1_000_000), Continue())
    with pytest.raises(Fenced):
        kept.store.kernel.commit(
            [Commit(held.fence, Continue()), stale],
            writes=lambda transaction: kept.store.write_changes(transaction, run, made),
        )
    needed = Needed(frozenset(["0/a"]), frozenset([""]), frozenset(["0/a"]))
    assert kept.store.load(run, needed) == Loaded()
    assert kept.store.get_logs(run) == []


def test_writes_that_raise_take_everything_back(kept: Kept) -> None:
    run = begin(kept)
    held = claim(kept)
    save(kept, step(run, "0/a", params={"x": 1}))

    def writes(transaction: Transaction) -> None:
        made = changes(step(run, "0/a", params={"x": 2}, yields_to=""), step(run, "0/b"))
        made.waits.append(Wait("0/a", "1"))
        made.logs.append(LogLine("0/l", {}))
        kept.store.write_changes(transaction, run, made)
        kept.store.write_many(transaction, [(run, changes(step(run, "0/c")))])
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        kept.store.kernel.commit([Commit(held.fence, Suspend())], writes=writes)
    assert kept.store.get_steps_by_workflow(run) == [step(run, "0/a", params={"x": 1})]
    needed = Needed(frozenset(), frozenset([""]), frozenset(["0/a"]))
    assert kept.store.load(run, needed) == Loaded()
    assert kept.store.get_logs(run) == []
    assert kept.store.kernel.renew(held.task.worker or claim(kept).task.id).stray == (held.fence,)  # type: ignore[arg-type]


def test_forgetting_does_not_touch_what_is_new(kept: Kept) -> None:
    run = begin(kept)
    save(kept, step(run, ""))
    assert kept.store.forget_runs(timedelta(0)) == 0
    assert kept.store.get_step(StepId(f"{run}:")) == step(run, "")
