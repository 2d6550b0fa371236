"""Tasks, events, servers and locks in the seeds' words, on both stores."""

from __future__ import annotations

from datetime import timedelta

import pytest

from afl.kernel.errors import BadRequest, NotFound
from afl.kernel.model import (
    CallSpec,
    CallStatus,
    ClaimRequest,
    Close,
    Commit,
    Json,
    Outcome,
    Suspend,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.runtime.entities import LockMetaData, ServerState, TaskState
from afl.runtime.kernel_queue import CLAIM_LEASE
from afl.runtime.persistence import EventId
from afl.runtime.states import EventState
from afl.runtime.step import StepId, WorkflowId
from tests.runtime.kept import HOUR, WORKER, Kept, call, claim, flow

NOBODY = "00000000-0000-7000-8000-ffffffffffff"


def test_a_task_is_claimed_once_by_its_short_name(kept: Kept) -> None:
    given: Json = {"run": "r", "step": "0/a", "program": "sha256:1", "params": {"x": 1}}
    (task,) = kept.store.kernel.enqueue([TaskSpec("facet", "ns.Pay", list="slow", input=given)])
    assert kept.store.claim_task(["Pay"]) is None
    assert kept.store.claim_task(["Other"], "slow") is None
    found = kept.store.claim_task(["Pay"], "slow")
    assert found is not None
    assert (found.uuid, found.name, found.state) == (task.id, "ns.Pay", TaskState.RUNNING)
    assert (found.workflow_id, found.step_id, found.flow_id) == ("r", "r:0/a", "sha256:1")
    assert (found.data, found.data_type, found.task_list_name) == ({"x": 1}, "facet", "slow")
    assert found.created > 0
    assert kept.store.claim_task(["Pay"], "slow") is None
    assert kept.store.get_task(task.id) == found
    assert found.runner_id in [server.uuid for server in kept.store.get_servers()]


def test_what_was_claimed_comes_back_when_the_claimer_is_gone(kept: Kept) -> None:
    (task,) = kept.store.kernel.enqueue([TaskSpec("facet", "Pay")])
    assert kept.store.claim_task(["Pay"]) is not None
    kept.advance(CLAIM_LEASE - timedelta(minutes=1))
    assert kept.store.kernel.sweep().tasks_recovered == 0
    assert kept.store.claim_task(["Pay"]) is None, "a claim is also a sign of life"
    kept.advance(CLAIM_LEASE - timedelta(minutes=1))
    assert kept.store.kernel.sweep().tasks_recovered == 0
    kept.advance(timedelta(minutes=2))
    assert kept.store.kernel.sweep().tasks_recovered == 1
    again = kept.store.claim_task(["Pay"])
    assert again is not None
    assert again.uuid == task.id


def test_a_task_that_is_not_there(kept: Kept) -> None:
    assert kept.store.get_task(NOBODY) is None
    assert kept.store.get_task("nonsense") is None
    assert kept.store.get_tasks_by_workflow(WorkflowId(NOBODY)) == []


def test_tasks_are_found_by_the_run_that_their_input_names(kept: Kept) -> None:
    root = flow(kept)
    held = claim(kept)
    child_input: Json = {"run": root, "step": "0/c", "params": {}}
    specs = [
        CallSpec("0/a", TaskSpec("facet", "A", input={"run": root, "step": "0/a"}), HOUR),
        CallSpec("0/c", TaskSpec("flow", "flow", input=child_input), HOUR),
    ]
    kept.store.kernel.commit([Commit(held.fence, Suspend(), calls=tuple(specs))])
    (child,) = kept.store.kernel.claim(ClaimRequest(WORKER, ("flow",)))
    inner: Json = {"run": child.task.id, "step": "0/b"}
    below = CallSpec("0/b", TaskSpec("facet", "B", input=inner), HOUR)
    kept.store.kernel.commit([Commit(child.fence, Suspend(), calls=(below,))])
    found = kept.store.get_tasks_by_workflow(root)
    assert sorted(task.step_id for task in found) == [f"{root}:0/a", f"{root}:0/c"]
    (task,) = kept.store.get_tasks_by_workflow(WorkflowId(child.task.id))
    assert (task.name, task.step_id) == ("B", f"{child.task.id}:0/b")


def test_more_tasks_than_a_page_are_found(kept: Kept) -> None:
    root = flow(kept)
    held = claim(kept)
    specs = tuple(
        CallSpec(f"0/{n}", TaskSpec("facet", "A", input={"run": root}), HOUR) for n in range(1100)
    )
    kept.store.kernel.commit([Commit(held.fence, Suspend(), calls=specs)])
    found = kept.store.get_tasks_by_workflow(root)
    assert len({task.uuid for task in found}) == 1100


def test_an_event_lives_as_its_call_does(kept: Kept) -> None:
    run = flow(kept)
    call(kept, "0/pay", amount=7)
    event = EventId(f"{run}:0/pay")
    made = kept.store.get_event(event)
    assert made is not None
    assert (made.id, made.workflow_id) == (event, run)
    assert made.step_id == StepId(event)
    assert (made.state, made.event_type) == (EventState.CREATED, "ns.Pay")
    assert made.payload == {"amount": 7}
    (held,) = kept.store.kernel.claim(ClaimRequest(WORKER, ("Pay",)))
    claimed = kept.store.get_event(event)
    assert claimed is not None
    assert claimed.state == EventState.PROCESSING
    kept.store.kernel.commit([Commit(held.fence, Close(Outcome.SUCCESS, {"ok": True}))])
    done = kept.store.get_event(event)
    assert done is not None
    assert (done.state, done.payload) == (
        EventState.COMPLETED,
        {"amount": 7, "result": {"ok": True}},
    )


def test_an_event_ends_in_error_with_its_call(kept: Kept) -> None:
    run = flow(kept)
    committed = call(kept, "0/pay")
    assert kept.store.kernel.reply(committed.calls["0/pay"], CallStatus.ERROR, {"type": "E"})
    failed = kept.store.get_event(EventId(f"{run}:0/pay"))
    assert failed is not None
    assert (failed.state, failed.payload) == (EventState.ERROR, {"error": {"type": "E"}})


def test_an_event_that_is_not_there(kept: Kept) -> None:
    run = flow(kept)
    for event in (f"{run}:0/a", f"{NOBODY}:0/a", "nonsense"):
        assert kept.store.get_event(EventId(event)) is None


def test_servers_are_the_workers(kept: Kept) -> None:
    spec = WorkerSpec(
        WorkerId("s1"), "name", "group", "service", ("a", "b"), ("ns.Pay",), lease=HOUR
    )
    kept.store.kernel.register(spec)
    found = kept.store.get_server("s1")
    assert found is not None
    assert (found.server_name, found.server_group, found.service_name) == (
        "name",
        "group",
        "service",
    )
    assert (found.topics, found.handlers, found.state) == (
        ["a", "b"],
        ["ns.Pay"],
        ServerState.STARTUP,
    )
    assert kept.store.get_servers() == [found]
    assert kept.store.get_server("s2") is None
    kept.advance(HOUR * 2)
    assert kept.store.get_servers() == []


def test_a_lock_has_one_owner(kept: Kept) -> None:
    store = kept.store
    assert store.acquire_lock("k", 1000, LockMetaData(topic="t", step_id="s"), "me")
    held = store.kernel.get_lock("k")
    assert held is not None
    assert held.meta == {"topic": "t", "handler": "", "step_name": "", "step_id": "s"}
    assert not store.acquire_lock("k", 1000, owner="you")
    assert not store.acquire_lock("k", 1000)
    assert not store.extend_lock("k", 5000, "you")
    assert not store.release_lock("k")
    assert store.extend_lock("k", 5000, "me")
    kept.advance(timedelta(seconds=4))
    assert not store.acquire_lock("k", 1000, owner="you")
    assert store.release_lock("k", "me")
    assert not store.release_lock("k", "me")
    assert store.acquire_lock("k", 1000, owner="you")


def test_without_an_owner_a_lock_belongs_to_the_store(kept: Kept) -> None:
    store = kept.store
    assert store.acquire_lock("k", 1000)
    assert not store.acquire_lock("k", 1000, owner="you")
    assert store.acquire_lock("k", 2000), "the owner may take it again"
    assert store.extend_lock("k", 2000)
    assert store.release_lock("k")
    assert store.acquire_lock("k", 1000)
    kept.advance(timedelta(seconds=2))
    assert not store.extend_lock("k", 1000), "it has expired"
    assert store.acquire_lock("k", 1000, owner="you")


@pytest.mark.parametrize("duration_ms", [0, -1])
def test_a_lock_for_no_time_is_refused(kept: Kept, duration_ms: int) -> None:
    with pytest.raises(BadRequest):
        kept.store.acquire_lock("k", duration_ms)


def test_the_kernel_is_the_same_store(kept: Kept) -> None:
    with pytest.raises(NotFound):
        kept.store.kernel.renew(WorkerId("nobody"))
    assert kept.store.kernel is kept.store.kernel
