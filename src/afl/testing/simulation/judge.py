"""The verdict at the end of a schedule, when all work should be done."""

from __future__ import annotations

from datetime import timedelta

from afl.kernel.model import Call, CallStatus, Outcome, State, Task, TaskSpec
from afl.kernel.rules import answer_of, status_of
from afl.testing.conformance.invariants import check
from afl.testing.simulation.ledger import Violation
from afl.testing.simulation.scenario import LANES, Scenario, expected_answer
from afl.testing.simulation.watch import WatchedStore
from afl.testing.simulation.world import World

_ALL = 100_000
_RETENTION = timedelta(days=1)


def check_invariants(world: World) -> None:
    wrong = check(world.store)
    if wrong:
        raise Violation(f"invariant {wrong[0].partition(':')[0]}", "; ".join(wrong))


def judge(world: World, store: WatchedStore, scenario: Scenario) -> None:
    """Raises `Violation` for the first promise that was not kept."""
    check_invariants(world)
    _check_tasks(world, store)
    _check_results(world, store, scenario)
    _check_effects(store)
    _check_domain_writes(world, store)
    _check_lanes(world)
    _check_rotation(world, store)


def _check_tasks(world: World, store: WatchedStore) -> None:
    """Nothing lost, nothing added, and every closed task is as it was when it closed."""
    ledger = store.ledger
    rows = {row.id: row for row in world.store.find_tasks(limit=_ALL)}
    if rows.keys() != ledger.tasks.keys():
        raise Violation(
            "nothing lost, nothing added", f"tasks {sorted(rows.keys() ^ ledger.tasks.keys())}"
        )
    for task in ledger.tasks.values():
        if task.closed is None or rows[task.id] != task.closed:
            raise Violation("closed is final", f"{task.path} is {rows[task.id]}")
        if len(world.store.read_box(task.id)) != task.cards:
            raise Violation("the journal has every card once", task.path)
        calls = {call.key: call for call in world.store.calls_of(task.id)}
        if {key: call.id for key, call in calls.items()} != ledger.calls_of.get(task.id, {}):
            raise Violation("nothing lost, nothing added", f"calls of {task.path}")
        if any(call.status is CallStatus.OPEN for call in calls.values()):
            raise Violation("every call is answered", task.path)


def _check_results(world: World, store: WatchedStore, scenario: Scenario) -> None:
    """Work whose calls came to what they come to without faults comes to the same itself."""
    for task in store.ledger.tasks.values():
        row, piece = task.closed, scenario.pieces[task.path]
        assert row is not None
        if row.outcome not in (Outcome.SUCCESS, Outcome.FAILED) or _is_undetermined(row):
            continue
        if any(not _is_expected(scenario, call) for call in world.store.calls_of(task.id)):
            continue
        if (status_of(row.outcome), answer_of(row)) != expected_answer(piece):
            raise Violation("as without faults", f"{task.path} is {answer_of(row)}")


def _is_undetermined(row: Task) -> bool:
    """Whether it was given up, or asked to stop, after which a failure is not tried again."""
    crashed = isinstance(row.error, dict) and row.error.get("code") == "crashed"
    return crashed or row.stop_requested


def _is_expected(scenario: Scenario, call: Call) -> bool:
    return (call.status, call.reply) == expected_answer(scenario.pieces[call.key])


def _check_effects(store: WatchedStore) -> None:
    """Each piece was done under one key at most, and one that succeeded was done."""
    for task in store.ledger.tasks.values():
        keys = store.ledger.effects.get(task.path, set())
        if len(keys) > 1:
            raise Violation("one effect for each piece", f"{task.path} for {sorted(keys)}")
        assert task.closed is not None
        if task.closed.outcome is Outcome.SUCCESS and store.ledger.first_of(task.id) not in keys:
            raise Violation("success means done", task.path)


def _check_domain_writes(world: World, store: WatchedStore) -> None:
    """The caller's own writes happened once for each commit that was taken."""
    marks = sorted(mark for marks in world.marks() for mark in marks.split())
    commits = sorted(f"{fence}/{number}" for fence, number in store.ledger.committed)
    if marks != commits:
        raise Violation("domain writes go with the commit", f"{marks} for {commits}")


def _check_lanes(world: World) -> None:
    """Nobody is left in a lane: who comes now gets it at once."""
    for lane in range(LANES):
        (task,) = world.store.enqueue([TaskSpec("probe", "Probe", lane=f"agent-{lane}")])
        if task.state is not State.READY:
            raise Violation("lanes end empty", f"agent-{lane} is held: {task.reason}")


def _check_rotation(world: World, store: WatchedStore) -> None:
    """Every run is finished, so all of it goes when it is old, and nothing else does."""
    done = store.ledger.tasks
    if world.store.rotate(_RETENTION):
        raise Violation("what is young stays", f"after {_RETENTION}")
    world.advance(_RETENTION)
    gone = 0
    while part := world.store.rotate(_RETENTION, limit=3):
        gone += part
        check_invariants(world)
    left = {row.id for row in world.store.find_tasks(limit=_ALL)} & done.keys()
    if gone != len(done) or left or any(map(world.store.get_call, store.ledger.calls)):
        raise Violation("what is old goes", f"{gone} of {len(done)} tasks went")
