"""The turns of an agent, found among all others."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from afl.kernel.model import RunId, State, Task, TaskId, TaskSpec
from afl.turns.model import TURN, AgentId, Price, Usage, UsageEntry
from tests.turns.store.kept import Kept, write

ANNA, BOB = AgentId("anna"), AgentId("bob")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def enqueue(kept: Kept, agent: str, name: str = "agent:fast", tenant: str = "default") -> Task:
    (task,) = kept.store.kernel.enqueue([TaskSpec(TURN, name, lane=agent, tenant=tenant)])
    return task


def test_turns_are_listed_with_the_newest_first_page_by_page(kept: Kept) -> None:
    mine = [enqueue(kept, ANNA).id for _ in range(5)]
    enqueue(kept, BOB)
    enqueue(kept, ANNA, tenant="other")
    enqueue(kept, "anna", name="demo.Ask")
    assert [task.id for task in kept.store.turns_of(ANNA)] == mine[::-1]
    assert [task.id for task in kept.store.turns_of(ANNA, limit=2)] == mine[:2:-1]
    assert [task.id for task in kept.store.turns_of(ANNA, before=mine[1])] == mine[:1]
    assert [task.tenant for task in kept.store.turns_of(ANNA, "other")] == ["other"]
    assert kept.store.turns_of(AgentId("nobody")) == []


def test_turns_within_a_run_are_listed_page_by_page_and_nothing_else(kept: Kept) -> None:
    kernel = kept.store.kernel
    (root,) = kernel.enqueue([TaskSpec("flow", "afl:execute")])
    run = RunId(root.id)
    spec = TaskSpec(TURN, "demo.Ask", run=run)
    others = [TaskSpec("event", "demo.Fetch", run=run)] * 3
    mine = [kernel.enqueue([spec, *others])[0].id for _ in range(5)]
    kernel.enqueue([TaskSpec(TURN, "demo.Ask")])
    assert [task.id for task in kept.store.turns_within(run)] == mine
    assert [task.id for task in kept.store.turns_within(run, mine[1], 2)] == mine[2:4]
    assert kept.store.turns_within(run, limit=0) == []
    assert kept.store.turns_within(RunId("nothing")) == []


def test_the_turn_in_hand_is_the_one_that_others_queue_behind(kept: Kept) -> None:
    assert kept.store.active_turn(ANNA) is None
    first, second = enqueue(kept, ANNA), enqueue(kept, ANNA)
    assert second.state is State.QUEUED
    active = kept.store.active_turn(ANNA)
    assert active is not None
    assert active.id == first.id
    assert kept.store.active_turn(BOB) is None
    kept.store.kernel.stop(first.id)
    active = kept.store.active_turn(ANNA)
    assert active is not None
    assert active.id == second.id


def test_what_some_turns_have_cost_is_added_up_without_the_others(kept: Kept) -> None:
    one, other = enqueue(kept, ANNA).id, enqueue(kept, BOB).id

    def entry(task: TaskId, number: int) -> UsageEntry:
        price = Price(Decimal(1), "v")
        return UsageEntry(
            task,
            number,
            RunId("r"),
            "default",
            None,
            None,
            None,
            "m",
            Usage(1, 1),
            price,
            0,
            NOON,
            NOON,
        )

    def work(transaction: object) -> None:
        for each in (entry(one, 0), entry(one, 1), entry(other, 0)):
            kept.store.record_usage(transaction, each)

    write(kept, work)
    (found,) = kept.store.usage("task", tasks=[one])
    assert (found.key, found.requests, found.usd) == (one, 2, Decimal(2))
    assert kept.store.usage("task", tasks=[]) == []
