"""The listings of the language, run: what they ask of others, what they wait for, what comes of it.

Each runs on both stores, with its work answered in every order and by several workers at once. What
comes of it must be the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from afl.kernel.model import Json
from tests.runtime.conformance.driver import (
    COMPLETED,
    ERROR,
    ORDERS,
    PAUSED,
    Answer,
    Driver,
    Failure,
    Order,
    Played,
    add_one,
    failing,
)
from tests.runtime.kept import Kept

LISTINGS = Path(__file__).parents[2] / "lang" / "conformance"


def _fails_for_one(params: dict[str, Json]) -> Mapping[str, Json]:
    if params["input"] == 1:
        raise Failure("Boom", "boom")
    return {"output": 5}


def _echo(name: str, source: str) -> Answer:
    return lambda params: {name: params[source]}


ANSWERS: dict[str, Answer] = {
    "AddOne": add_one,
    "Count": _echo("c", "v"),
    "Show": lambda params: {"seen": params},
    "Slow": _echo("y", "x"),
}
#: The states in which steps wait, shortened.
BODY, BLOCK, NEEDS, EVENT = (
    "statement.blocks.Continue",
    "block.execution.Continue",
    "block.execution.Begin",
    "EventTransmit",
)


@dataclass(frozen=True)
class Listing:
    """A program, what it is given, and what is expected of it."""

    file: str
    inputs: dict[str, Json]
    outputs: dict[str, Json]
    #: the steps that wait when the run first waits for others, with their states
    waiting: dict[str, str] = field(default_factory=dict)
    #: the steps that have ended by then
    done: tuple[str, ...] = ()
    #: everything asked of others: the first time it waits, and later
    asked: tuple[tuple[str, Json], ...] = ()
    later: tuple[tuple[str, Json], ...] = ()
    #: the paths of all steps in the end
    paths: str = ""
    answers: dict[str, Answer] = field(default_factory=dict)


_RECORD = " 0 0/k 0/yield-0"
CASES = {
    "A1 record facet": Listing("record_facet", {}, {"o": 44}, paths=_RECORD),
    "A1 with an input": Listing("record_facet", {"n": 5}, {"o": 47}, paths=_RECORD),
    "A2 composed facet": Listing(
        "composed_facet",
        {},
        {"r": 3},
        paths=" 0 0/t1 0/t1/0 0/t1/0/p 0/t1/0/q 0/t1/0/yield-0 0/yield-0",
    ),
    "A3 step body": Listing(
        "step_body",
        {},
        {"r": 13},
        paths=" 0 0/t1 0/t1/0 0/t1/0/p 0/t1/0/p/0 0/t1/0/p/0/k 0/t1/0/p/0/yield-0"
        " 0/t1/0/q 0/t1/0/yield-0 0/yield-0",
    ),
    "A4 event in a step body": Listing(
        "event_in_step_body",
        {},
        {"r": 15},
        waiting={
            "": BODY,
            "0": BLOCK,
            "0/t1": BODY,
            "0/t1/0": BLOCK,
            "0/t1/0/p": BODY,
            "0/t1/0/p/0": BLOCK,
            "0/t1/0/p/0/k": EVENT,
        },
        done=("0/t1/0/q",),
        asked=(("Count", {"v": 3}),),
        paths=" 0 0/t1 0/t1/0 0/t1/0/p 0/t1/0/p/0 0/t1/0/p/0/k 0/t1/0/p/0/yield-0"
        " 0/t1/0/q 0/t1/0/yield-0 0/yield-0",
    ),
    "A5 concurrent events": Listing(
        "concurrent_events",
        {"input": 1},
        {"output": 4},
        waiting={"": BODY, "0": BLOCK, "0/s1": EVENT, "0/s2": EVENT},
        asked=(("AddOne", {"input": 1}), ("AddOne", {"input": 1})),
        paths=" 0 0/s1 0/s2 0/s3 0/yield-0",
    ),
    "A6 concurrent clauses": Listing(
        "concurrent_clauses",
        {"input": 5},
        {"output1": 8, "output2": 9},
        waiting={
            "": BODY,
            "0": BLOCK,
            "1": BLOCK,
            "0/s1": EVENT,
            "0/s2": EVENT,
            "1/s1": EVENT,
            "1/s2": EVENT,
        },
        asked=(
            ("AddOne", {"input": 5}),
            ("AddOne", {"input": 1}),
            ("AddOne", {"input": 5}),
            ("AddOne", {"input": 2}),
        ),
        paths=" 0 0/s1 0/s2 0/s3 0/yield-0 1 1/s1 1/s2 1/s3 1/yield-0",
    ),
    "A7 sequential events": Listing(
        "sequential_events",
        {"input": 1},
        {"output": 3},
        waiting={"": BODY, "0": BLOCK, "0/s1": EVENT},
        asked=(("AddOne", {"input": 1}),),
        later=(("AddOne", {"input": 2}),),
        paths=" 0 0/s1 0/s2 0/yield-0",
    ),
    "A8 event with a body": Listing(
        "event_with_body",
        {"input": 1},
        {"output": 200},
        waiting={"": BODY, "0": BLOCK, "0/s1": EVENT},
        asked=(("AddOne", {"input": 1}),),
        paths=" 0 0/s1 0/s1/0 0/s1/0/k 0/s1/0/yield-0 0/yield-0",
    ),
    "A9 foreach": Listing(
        "foreach",
        {"xs": [3, 1, 2]},
        {"ys": [4, 2, 3]},
        waiting={
            "": BODY,
            "0": BLOCK,
            "0/0": BLOCK,
            "0/1": BLOCK,
            "0/2": BLOCK,
            "0/0/o": EVENT,
            "0/1/o": EVENT,
            "0/2/o": EVENT,
        },
        asked=(("AddOne", {"input": 3}), ("AddOne", {"input": 1}), ("AddOne", {"input": 2})),
        paths=" 0 0/0 0/0/o 0/0/yield-0 0/1 0/1/o 0/1/yield-0 0/2 0/2/o 0/2/yield-0",
    ),
    "E9 foreach over nothing": Listing("foreach", {"xs": []}, {"ys": []}, paths=" 0"),
    **{
        f"A10 when, input {number}": Listing(
            "when",
            {"input": number},
            {"a": None, "b": None, "d": None, **outputs},
            waiting={"": BODY, "0": BLOCK, "0/s": EVENT, "1": NEEDS},
            asked=(("AddOne", {"input": number}),),
            paths=f" 0 0/s 1 1/case-{case} 1/case-{case}/k 1/case-{case}/yield-0",
        )
        for number, case, outputs in (
            (20, 0, {"a": 1}),
            (6, 1, {"b": 2}),
            (1, 2, {"d": 3}),
        )
    },
    "A11 schema value": Listing("schema_value", {}, {"o": 31}, paths=" 0 0/c 0/yield-0"),
    "A12 implicit and mixins": Listing(
        "implicit_and_mixins",
        {},
        {"o": {"c": 3, "r": {"max": 5}, "a": 99, "e": 2, "b": 7}},
        waiting={"": BODY, "0": BLOCK, "0/s": EVENT},
        asked=(("Show", {"c": 3, "r": {"max": 5}, "a": 99, "e": 2, "b": 7}),),
        paths=" 0 0/s 0/yield-0",
    ),
    "A13 scripts": Listing(
        "scripts",
        {"i": 5},
        {"o": 10, "q": 110},
        waiting={"": "facet.scripts.Continue"},
        asked=(("afl:script", {"i": 5}),),
        later=(("afl:script", {"i": 10}),),
        paths=" 0 0/k 0/yield-0 1",
    ),
    "A14 workflow as a step": Listing(
        "workflow_as_step", {}, {"o": 16}, paths=" 0 0/a 0/b 0/yield-0"
    ),
    "A15 steps as arguments": Listing(
        "pass_by_step",
        {"input": "alpha"},
        {"x": "alpha-primary", "y": "alpha-tagged"},
        paths=" 0 0/c 0/c/0 0/c/0/yield-0 0/f1 0/f1/0 0/f1/0/yield-0"
        " 0/f1/with/m 0/f1/with/m/0 0/f1/with/m/0/yield-0 0/yield-0",
    ),
    "A16 log and assert": Listing(
        "log_and_assert", {"i": 50}, {"o": 50}, paths=" 0 0/assert-0 0/k 0/log-0 0/yield-0"
    ),
    "A17 collections": Listing(
        "collections",
        {},
        {"o": [["a1", 3.5, 1, -20, 14, True, True], 20]},
        paths=" 0 0/b 0/c 0/d 0/yield-0",
    ),
    "catch, nothing fails": Listing(
        "catch",
        {"x": 2},
        {"y": 2},
        waiting={"": BODY, "0": BLOCK, "0/s": EVENT},
        done=("with/lg",),
        asked=(("Slow", {"x": 2}),),
        paths=" 0 0/s 0/yield-0 0/yield-0+1 with/lg",
    ),
    "catch, the step fails": Listing(
        "catch",
        {"x": 2},
        {"y": -1},
        waiting={"": BODY, "0": BLOCK, "0/s": EVENT},
        done=("with/lg",),
        asked=(("Slow", {"x": 2}),),
        paths=" 0 0/s 0/s/catch 0/s/catch/case-1 0/s/catch/case-1/yield-0"
        " 0/yield-0 0/yield-0+1 with/lg",
        answers={"Slow": failing()},
    ),
    "catch, the clause fails with its step": Listing(
        "catch",
        {"x": 2},
        {"y": -3},
        waiting={"": BODY, "0": BLOCK, "0/s": EVENT},
        done=("with/lg",),
        asked=(("Slow", {"x": 2}),),
        later=(("Slow", {"x": 0}),),
        paths=" 0 0/catch 0/catch/yield-0 0/catch/yield-0+1 0/s 0/s/catch 0/s/catch/case-0"
        " 0/s/catch/case-0/r 0/s/catch/case-0/yield-0 0/yield-0 with/lg",
        answers={"Slow": failing("TimeoutError")},
    ),
}


def _text(file: str) -> str:
    return (LISTINGS / f"{file}.afl").read_text(encoding="utf-8")


def _driver(kept: Kept, listing: Listing, order: Order, seed: int = 0, workers: int = 1) -> Driver:
    answers = {**ANSWERS, **listing.answers}
    text = _text(listing.file)
    return Driver(kept.store, text, answers, order=order, seed=seed, workers=workers)


def _sorted(asked: Iterable[tuple[str, Json]]) -> list[str]:
    return sorted(json.dumps(each, sort_keys=True) for each in asked)


def _as_expected(listing: Listing, played: Played) -> None:
    assert played.status is COMPLETED, played.result
    assert played.outputs == listing.outputs
    assert [*played.steps] == ["", *listing.paths.split()]
    assert _sorted(played.asked) == _sorted((*listing.asked, *listing.later))
    # a step that nobody needed any more is skipped; everything else has run to its end
    assert set(played.states.values()) <= {"complete", "error", "skipped"}


@pytest.mark.parametrize("listing", CASES.values(), ids=CASES.keys())
def test_a_listing_waits_where_it_must(kept: Kept, listing: Listing) -> None:
    played = _driver(kept, listing, "made").pause(**listing.inputs)
    if not listing.asked:
        _as_expected(listing, played)
        return
    assert played.status is PAUSED
    assert played.asked == [*listing.asked]
    assert {task.list for task in played.tasks} == {"default"}
    assert played.states == listing.waiting | dict.fromkeys(listing.done, "complete")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("listing", CASES.values(), ids=CASES.keys())
def test_a_listing_ends_as_it_must(kept: Kept, listing: Listing, order: Order) -> None:
    _as_expected(listing, _driver(kept, listing, order).play(**listing.inputs))


@pytest.mark.parametrize("listing", CASES.values(), ids=CASES.keys())
def test_several_workers_change_nothing(kept: Kept, listing: Listing) -> None:
    for seed in range(3):
        driver = _driver(kept, listing, "chance", seed, workers=3)
        _as_expected(listing, driver.play(**listing.inputs))


@pytest.mark.parametrize("order", ORDERS)
def test_a_failed_event_drains_its_siblings(kept: Kept, order: Order) -> None:
    # A18, E14
    driver = Driver(kept.store, _text("error_drains"), {"AddOne": _fails_for_one}, order=order)
    played = driver.play()
    assert played.status is ERROR
    assert played.error == {"type": "Boom", "message": "boom", "step": "0/a"}
    assert played.states == {
        "": "error",
        "0": "error",
        "0/a": "error",
        "0/b": "complete",
        "0/c": "skipped",
        "0/yield-0": "complete",
    }
    assert played.steps["0/c"].skipped_because == "0/a"
    assert played.asked == [("AddOne", {"input": 1}), ("AddOne", {"input": 2})]


def test_a_failed_event_leaves_the_run_waiting_for_the_others(kept: Kept) -> None:
    # A18, E14
    driver = Driver(kept.store, _text("error_drains"), {"AddOne": _fails_for_one})
    run = driver.pause().run.id
    failed, other = driver.claim()
    driver.answer(failed)
    driver.advance()
    played = driver.played(run)
    assert played.status is PAUSED
    assert played.states == {
        "": BODY,
        "0": BLOCK,
        "0/a": "error",
        "0/b": EVENT,
        "0/c": "skipped",
    }
    driver.answer(other)
    driver.advance()
    assert driver.played(run).status is ERROR


def test_steps_appear_as_their_needs_are_met(kept: Kept) -> None:
    # A6, E6: one clause is complete while the other waits
    driver = _driver(kept, CASES["A6 concurrent clauses"], "made")
    run = driver.pause(input=5).run.id
    counts, first = [], []
    for claim in driver.claim():
        driver.answer(claim)
        driver.advance()
        played = driver.played(run)
        counts.append(len(played.steps))
        first.append(played.states["0"])
    assert counts == [7, 9, 9, 11]
    assert first == [BLOCK, "complete", "complete", "complete"]


def test_a_listing_that_asserts_fails(kept: Kept) -> None:
    # A16, E16
    played = Driver(kept.store, _text("log_and_assert")).play(i=5)
    assert played.status is ERROR
    assert played.error["type"] == "AssertionFailed"
    assert played.states["0/assert-0"] == "error"
    assert [line.values for line in kept.store.get_logs(played.run.id)] == [{"value": 5}]


def test_a_workflow_as_a_step_is_a_run_of_its_own(kept: Kept) -> None:
    # A14
    driver = Driver(kept.store, _text("workflow_as_step"))
    played = driver.play()
    children = kept.store.find_runs(parent=played.run.id)
    assert {child.parent_path: (child.inputs, child.outputs) for child in children} == {
        "0/a": ({"i": 4}, {"o": 5}),
        "0/b": ({"i": 10}, {"o": 11}),
    }
    for child in children:
        assert driver.played(child.id).paths("complete") == ["", "0", "0/k", "0/yield-0"]


def test_a_mixin_does_not_leak_into_returns(kept: Kept) -> None:
    # A15, E15
    played = Driver(kept.store, _text("pass_by_step")).play(input="alpha")
    assert played.steps["0/f1"].returns == {"output": "alpha-primary"}


def test_a_schema_value_has_its_fields_as_returns(kept: Kept) -> None:
    # A11, E11
    step = Driver(kept.store, _text("schema_value")).play().steps["0/c"]
    assert (step.params, step.returns) == ({}, {"t": 30, "u": None})
