"""Runs in both stores: what goes in comes out, once, and only when its transaction is kept."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta

import pytest

from afl.kernel.errors import BadRequest
from afl.kernel.model import CallStatus
from afl.kernel.port import Transaction
from afl.runtime.entities import Fork, Run
from afl.runtime.persistence import LogLine, Needed, Wait
from afl.runtime.states import RunState
from afl.runtime.step import StepId, WorkflowId
from afl.runtime.superseded import Superseded
from tests.runtime.kept import (
    HOUR,
    Kept,
    begin,
    changes,
    end,
    flow,
    save,
    step,
    write,
)

NOBODY = WorkflowId("00000000-0000-7000-8000-ffffffffffff")


def full_run(id_: WorkflowId, other: WorkflowId) -> Run:
    """A run in which every field has a value of its own."""
    return Run(
        id=id_,
        program="sha256:1",
        workflow="billing.Month",
        inputs={"text": 'ä"\\{}', "list": [1, 2.5, None, True], "map": {"a": {}}},
        state=RunState.RUNNING,
        outputs={"total": 7},
        error={"type": "E", "message": "m"},
        labels={"team": "ops", "tier": "1"},
        key="key-1",
        priority=7,
        tenant="acme",
        parent=other,
        parent_path="0/call",
        fork=Fork(other, ("0/a", "0/b"), {"0/c": {"x": [1]}}),
        pause_requested=True,
    )


def test_every_field_comes_back(kept: Kept) -> None:
    given = full_run(flow(kept), flow(kept))
    bare = Run(NOBODY, "p", "w", {})
    same = [
        each.name for each in fields(Run) if getattr(given, each.name) == getattr(bare, each.name)
    ]
    assert same == ["created_at", "finished_at"], "the sample must have a value for every field"
    write(kept, lambda transaction: kept.store.write_run(transaction, given))
    found = kept.store.get_run(given.id)
    assert found is not None
    assert found.created_at is not None
    assert replace(found, created_at=None) == given


def test_a_bare_run_comes_back(kept: Kept) -> None:
    given = Run(flow(kept), "p", "w", {})
    write(kept, lambda transaction: kept.store.write_run(transaction, given))
    found = kept.store.get_run(given.id)
    assert found is not None
    assert replace(found, created_at=None) == given


def test_who_is_not_there(kept: Kept) -> None:
    for run in (NOBODY, WorkflowId("no id at all")):
        assert kept.store.get_run(run) is None
        assert not kept.store.set_pause(run, True)


def test_a_run_that_is_there_stays_as_it_is(kept: Kept) -> None:
    run = begin(kept, workflow="first")
    again = Run(run, "p", "second", {})
    write(kept, lambda transaction: kept.store.write_run(transaction, again))
    found = kept.store.get_run(run)
    assert found is not None
    assert found.workflow == "first"


def test_the_callers_maps_are_not_the_stores(kept: Kept) -> None:
    inputs: dict[str, object] = {"list": [1]}
    run = begin(kept, inputs=inputs)
    inputs["list"] = "other"
    found = kept.store.get_run(run)
    assert found is not None
    found.inputs["list"].append(2)  # type: ignore[union-attr]
    again = kept.store.get_run(run)
    assert again is not None
    assert again.inputs == {"list": [1]}


@pytest.mark.parametrize("value", [float("nan"), "\0", (1,), {1: 2}])
def test_inputs_that_cannot_come_back_are_refused(kept: Kept, value: object) -> None:
    id_ = flow(kept)
    bad = Run(id_, "p", "w", {"a": value})  # type: ignore[dict-item]
    with pytest.raises(BadRequest):
        write(kept, lambda transaction: kept.store.write_run(transaction, bad))
    assert kept.store.get_run(id_) is None


def test_a_run_begins_and_ends_once(kept: Kept) -> None:
    run = begin(kept)
    for _ in range(2):
        write(kept, lambda transaction: kept.store.start_run(transaction, run))
    started = kept.store.get_run(run)
    assert started is not None
    assert (started.state, started.finished_at) == (RunState.RUNNING, None)
    kept.advance(HOUR)

    def fail(transaction: Transaction) -> None:
        kept.store.finish_run(transaction, run, RunState.FAILED, None, {"type": "E"})

    write(kept, fail)
    failed = kept.store.get_run(run)
    assert failed is not None
    assert (failed.state, failed.outputs, failed.error) == (RunState.FAILED, None, {"type": "E"})
    assert failed.created_at is not None
    assert failed.finished_at is not None
    assert HOUR <= failed.finished_at - failed.created_at < HOUR + timedelta(seconds=1)
    end(kept, run, RunState.COMPLETED)
    write(kept, lambda transaction: kept.store.start_run(transaction, run))
    assert kept.store.get_run(run) == failed


def test_outputs_are_kept(kept: Kept) -> None:
    run = begin(kept)
    write(
        kept,
        lambda transaction: kept.store.finish_run(
            transaction, run, RunState.COMPLETED, {"sum": [1, {"a": "ß"}]}, None
        ),
    )
    found = kept.store.get_run(run)
    assert found is not None
    assert (found.outputs, found.error) == ({"sum": [1, {"a": "ß"}]}, None)


def test_pause_is_asked_for_and_taken_back_until_the_end(kept: Kept) -> None:
    run = begin(kept)
    for pause in (True, False):
        assert kept.store.set_pause(run, pause)
        found = kept.store.get_run(run)
        assert found is not None
        assert found.pause_requested is pause
    end(kept, run)
    assert not kept.store.set_pause(run, True)


def test_runs_are_found_by_what_they_are(kept: Kept) -> None:
    parent = begin(kept, workflow="a", labels={"x": "1", "y": "2"})
    child = begin(kept, workflow="b", parent=parent, labels={"x": "1"})
    other = begin(kept, workflow="b", tenant="acme")
    end(kept, other, RunState.FAILED)

    def ids(**asked: object) -> list[WorkflowId]:
        return [run.id for run in kept.store.find_runs(**asked)]  # type: ignore[arg-type]

    assert ids() == [other, child, parent]
    assert ids(limit=2) == [other, child]
    assert ids(before=child) == [parent]
    assert ids(state=RunState.CREATED) == [child, parent]
    assert ids(state=RunState.FAILED) == [other]
    assert ids(workflow="b") == [other, child]
    assert ids(labels={"x": "1"}) == [child, parent]
    assert ids(labels={"x": "1", "y": "2"}) == [parent]
    assert ids(labels={"x": "2"}) == []
    assert ids(labels={}) == [other, child, parent]
    assert ids(parent=parent) == [child]
    assert ids(parent=parent, state=RunState.FAILED) == []


def test_writes_that_raise_leave_no_trace(kept: Kept) -> None:
    id_ = flow(kept)
    other = begin(kept)

    def work(transaction: Transaction) -> None:
        kept.store.write_run(transaction, Run(id_, "p", "w", {}))
        kept.store.start_run(transaction, other)
        kept.store.finish_run(transaction, other, RunState.FAILED, None, {})
        raise RuntimeError("on purpose")

    before = kept.store.get_run(other)
    with pytest.raises(RuntimeError, match="on purpose"):
        write(kept, work)
    assert kept.store.get_run(id_) is None
    assert kept.store.get_run(other) == before


def test_old_runs_are_forgotten_whole(kept: Kept) -> None:
    old, young, live = begin(kept), begin(kept), begin(kept)
    for run in (old, young, live):
        made = changes(step(run, ""), step(run, "0/y", yields_to=""))
        made.waits.append(Wait("0/a", "1"))
        made.logs.append(LogLine("0/l", {"a": 1}))
        write(kept, lambda tx, run=run, made=made: kept.store.write_changes(tx, run, made))  # type: ignore[misc]
    end(kept, old)
    kept.advance(HOUR * 2)
    end(kept, young)
    assert kept.store.forget_runs(HOUR) == 1
    assert kept.store.forget_runs(HOUR) == 0
    everything = Needed(frozenset(["", "0/y"]), frozenset([""]), frozenset(["0/a"]))
    for run, there in ((old, False), (young, True), (live, True)):
        assert (kept.store.get_run(run) is not None) is there
        loaded = kept.store.load(run, everything)
        assert (len(loaded.steps), len(loaded.yields), len(loaded.waits)) == (
            (2, 1, 1) if there else (0, 0, 0)
        )
        assert bool(kept.store.get_logs(run)) is there


def test_forgetting_stops_at_the_limit_and_the_first_go_first(kept: Kept) -> None:
    runs = [begin(kept) for _ in range(5)]
    for run in reversed(runs):
        end(kept, run)
        save(kept, step(run, ""))
    kept.advance(HOUR)
    assert kept.store.forget_runs(timedelta(0), 2) == 2
    assert [run.id for run in kept.store.find_runs()] == runs[2::-1]
    assert kept.store.forget_runs(timedelta(0)) == 3


def test_what_others_need_is_not_forgotten(kept: Kept) -> None:
    source, parent = begin(kept), begin(kept)
    child = begin(kept, parent=parent)
    fork = begin(kept, fork=Fork(source))
    end(kept, source)
    end(kept, child)
    kept.advance(HOUR)
    assert kept.store.forget_runs(timedelta(0)) == 0
    end(kept, parent)
    end(kept, fork)
    assert kept.store.forget_runs(timedelta(0)) == 4
    assert kept.store.find_runs() == []


def test_a_forgotten_run_has_no_step(kept: Kept) -> None:
    run = begin(kept)
    save(kept, step(run, "0/a"))
    end(kept, run)
    kept.store.forget_runs(timedelta(0))
    assert kept.store.get_step(StepId(f"{run}:0/a")) is None
    assert kept.store.get_steps_by_workflow(run) == []


def test_results_that_came_too_late_are_kept_with_their_run(kept: Kept) -> None:
    run = begin(kept)
    late = [
        Superseded(run, "0/a", "w-1", CallStatus.OK, {"n": [1, None, "ä"]}),
        Superseded(NOBODY, "0/a", "w-1", CallStatus.OK, {}),
        Superseded(run, "0/b", "w-1", CallStatus.ERROR, {"type": "E", "message": "m"}),
    ]
    kept.store.note_superseded(late)
    found = kept.store.get_superseded(run)
    assert [replace(each, noted_at=None) for each in found] == [late[0], late[2]]
    assert all(each.noted_at is not None for each in found)
    assert kept.store.get_superseded(run, limit=1) == found[:1]
    assert kept.store.get_superseded(NOBODY) == []
    end(kept, run)
    assert kept.store.forget_runs(timedelta(0)) == 1
    assert kept.store.get_superseded(run) == []
