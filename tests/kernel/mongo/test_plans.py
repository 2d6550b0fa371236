"""What the kernel asks a MongoDB for is answered by an index, and in order where order matters."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from afl.kernel.model import (
    CallSpec,
    CallStatus,
    CardSpec,
    ClaimRequest,
    Close,
    Commit,
    Outcome,
    Retry,
    Suspend,
    TaskId,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.mongo.database import Database
from afl.kernel.rules import card_hash
from tests.kernel.mongo.databases import MongoHarness

MINUTE = timedelta(minutes=1)
WORKER = WorkerId("w")
ALL = ClaimRequest(WORKER, ("flow", "tool"), n=20, token="t")


@pytest.fixture
def profiled(harness: MongoHarness) -> Iterator[Database]:
    database = harness.store.database
    database.command("profile", 2)
    yield database
    database.command("profile", 0)
    database.collection("system.profile").drop()


def _everything(harness: MongoHarness) -> None:
    """A bit of all that a store is asked for."""
    store = harness.store
    store.register(WorkerSpec(WORKER, "w", handlers=("flow", "tool"), lease=MINUTE))
    lane = TaskSpec("flow", "flow", lane="l", idem="one")
    flow, queued, plain = store.enqueue(
        [lane, TaskSpec("flow", "flow", lane="l"), TaskSpec("t", "tool")]
    )
    claims = {claim.task.id: claim for claim in store.claim(ALL)}
    store.claim(ALL)
    call = CallSpec("k", TaskSpec("t", "tool", retry=Retry(max_failures=0)), MINUTE)
    commit = Commit(claims[flow.id].fence, Suspend(), cards=(CardSpec("c", 1),), calls=(call,))
    calls = store.commit([commit])[0].calls
    store.commit([commit])
    store.extend(claims[plain.id].fence, MINUTE)
    store.renew(WORKER, [claims[plain.id].fence])
    store.reply(calls["k"], CallStatus.OK, "answer")
    store.commit_and_claim([Commit(claims[plain.id].fence, Close(Outcome.SUCCESS))], ALL)
    store.stop(flow.id, force=True)
    harness.advance(timedelta(hours=1))
    store.sweep()
    store.standing([flow.id, queued.id, plain.id])
    store.find_calls(flow.id, ["k"])
    store.find_tasks(run=flow.run)
    store.dead_letters()
    store.losses_of([queued.id])
    store.read_box(flow.id)
    store.get_cards([card_hash("c", 1)])
    store.read_outbox()
    store.workers_seen(MINUTE)
    store.acquire_lock("k", "t", MINUTE)
    store.release_lock("k", "t")
    store.rotate(MINUTE)
    store.renew(WORKER)
    assert store.take(WORKER, TaskId("none")) is None


def test_nothing_is_looked_for_from_end_to_end(profiled: Database, harness: MongoHarness) -> None:
    _everything(harness)
    scans = profiled.find(
        "system.profile",
        {"planSummary": {"$regex": "COLLSCAN"}, "ns": {"$not": {"$regex": "system|migration"}}},
    )
    seen = [(scan["ns"].partition(".")[2], scan.get("command", {})) for scan in scans]
    # these are looked through whole, and have only what is wrong right now
    assert [each for each in seen if each[0] not in {"orphan"}] == []


def test_a_fence_is_found_by_its_index(profiled: Database, harness: MongoHarness) -> None:
    _everything(harness)
    by_fence = {"command.find": "task", "command.filter.last_fence": {"$exists": True}}
    looks = profiled.find("system.profile", by_fence)
    assert looks
    assert {look["planSummary"] for look in looks} == {"IXSCAN { last_fence: 1 }"}


def test_a_claim_reads_no_more_than_it_takes(profiled: Database, harness: MongoHarness) -> None:
    """Neither what is delayed nor what others serve, however much there is of it."""
    store = harness.store
    store.register(WorkerSpec(WORKER, "w", handlers=("flow", "tool"), lease=timedelta(days=1)))
    many = [TaskSpec("t", "tool", priority=9, delay=timedelta(hours=1))] * 100
    others = [TaskSpec("t", "other", priority=9)] * 100
    store.enqueue([*many, *others, *[TaskSpec("t", "ns.tool")] * 5, *[TaskSpec("f", "flow")] * 5])
    assert len(store.claim(ClaimRequest(WORKER, ("flow", "tool"), n=3))) == 3
    looks = profiled.find(
        "system.profile", {"command.find": "task", "command.sort": {"$exists": 1}}
    )
    assert looks
    for look in looks:
        assert look["keysExamined"] < 30, look["planSummary"]
        assert not look.get("hasSortStage", False)
