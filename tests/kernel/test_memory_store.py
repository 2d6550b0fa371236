"""What only the memory store has: one lock, tables, an undo log, and copies of everything."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from afl.kernel.errors import BadRequest
from afl.kernel.machine import commits
from afl.kernel.memory import MemoryStore
from afl.kernel.memory.heap import KeyedHeap
from afl.kernel.memory.transaction import MemoryTransaction, Table
from afl.kernel.model import (
    CallStatus,
    Card,
    CardSpec,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Outcome,
    Suspend,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.port import Store, Transaction
from afl.kernel.rules import card_hash
from afl.testing import SequentialIds, VirtualClock
from afl.testing.conformance.driver import DONE, Driver, call
from afl.testing.conformance.harness import MemoryHarness
from afl.testing.conformance.invariants import check

WORKER = WorkerId("w")
WORK = TaskSpec("test", "work")


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore(VirtualClock(), SequentialIds())
    made.register(WorkerSpec(WORKER, "w", handlers=("work",), lease=timedelta(days=1)))
    return made


def tables_of(transaction: Transaction) -> MemoryTransaction:
    assert isinstance(transaction, MemoryTransaction)
    return transaction


def test_the_store_is_a_store(store: MemoryStore) -> None:
    as_port: Store = store
    assert as_port.live_workers()[0].id == WORKER


# Threads


def _in_threads(count: int, work: Callable[[], None]) -> None:
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=guarded) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_eight_threads_close_each_task_exactly_once(store: MemoryStore) -> None:
    tasks = store.enqueue([WORK] * 1000)
    tasks += store.enqueue(
        [TaskSpec("test", "work", lane=f"lane-{number % 50}") for number in range(1000)]
    )
    closed: list[str] = []
    request = ClaimRequest(WORKER, ("work",), n=3)

    def serve() -> None:
        while claims := store.claim(request):
            for claim in claims:
                store.commit([Commit(claim.fence, DONE, cards=(CardSpec("did", claim.fence),))])
                closed.append(claim.task.id)

    # A thread may see an empty queue while another holds the last task of a lane; so: until done.
    while len(closed) < len(tasks):
        _in_threads(8, serve)
    assert Counter(closed) == Counter(task.id for task in tasks)
    events = Counter(entry.task for entry in store.read_outbox(limit=10_000))
    assert events == Counter(task.id for task in tasks)
    assert check(store) == []


def test_threads_that_share_a_lane_never_overlap(store: MemoryStore) -> None:
    store.enqueue([TaskSpec("test", "work", lane="l")] * 200)
    log: list[tuple[str, int]] = []
    request = ClaimRequest(WORKER, ("work",), n=5)

    def serve() -> None:
        for _ in range(400):
            for claim in store.claim(request):
                log.append(("begin", claim.fence))
                log.append(("end", claim.fence))
                store.commit([Commit(claim.fence, DONE)])

    _in_threads(4, serve)
    assert len(log) == 400
    pairs = list(pairwise(log))[::2]
    assert all(a == ("begin", fence) and kind == "end" for a, (kind, fence) in pairs)


# Tables and undoing


def test_tables_are_written_with_the_transaction(store: MemoryStore) -> None:
    def write(transaction: Transaction) -> None:
        steps = tables_of(transaction).tables["steps"]
        steps["one"] = 1
        steps["two"] = 2
        del steps["one"]
        assert dict(steps) == {"two": 2}

    store.enqueue([WORK], write)
    assert store.read_table("steps") == {"two": 2}
    assert store.read_table("nothing") == {}


def test_tables_go_back_to_what_they_were(store: MemoryStore) -> None:
    def begin(transaction: Transaction) -> None:
        tables_of(transaction).tables["steps"].update(a=1, b=2)

    def spoil(transaction: Transaction) -> None:
        steps = tables_of(transaction).tables["steps"]
        steps["a"] = 9
        steps["c"] = 3
        steps.pop("b")
        steps.clear()
        steps["d"] = 4
        tables_of(transaction).tables["other"]["x"] = 1
        raise ZeroDivisionError

    store.enqueue([WORK], begin)
    with pytest.raises(ZeroDivisionError):
        store.enqueue([WORK], spoil)
    assert store.read_table("steps") == {"a": 1, "b": 2}
    assert store.read_table("other") == {}
    assert len(store.find_tasks()) == 1


def test_a_table_that_was_kept_cannot_be_written(store: MemoryStore) -> None:
    kept: list[Table] = []
    store.enqueue([WORK], lambda transaction: kept.append(tables_of(transaction).tables["t"]))
    with pytest.raises(BadRequest, match="must not keep it"):
        kept[0]["x"] = 1
    with pytest.raises(KeyError):
        del kept[0]["x"]


def test_the_store_cannot_be_changed_from_inside_its_own_transaction(store: MemoryStore) -> None:
    with pytest.raises(BadRequest, match="inside another one"):
        store.enqueue([WORK], lambda _: print(store.enqueue([WORK])))
    assert store.find_tasks() == []
    assert len(store.enqueue([WORK])) == 1


def _interrupt(_transaction: Transaction) -> None:
    raise KeyboardInterrupt


def test_an_undone_step_leaves_every_index_as_it_was() -> None:
    """Whatever a transaction moved can be done again after it was undone, and comes out the same
    as in a store where nothing ever failed."""

    def play(driver: Driver, *, fail: bool) -> list[object]:
        def commit(claim: Claim, *, calls: tuple[str, ...] = (), close: bool = False) -> None:
            then = Close(Outcome.SUCCESS, "r") if close else Suspend()
            made = Commit(
                claim.fence,
                then,
                cards=(CardSpec("note", len(calls)),),
                calls=tuple(call(key, lane="m", hold=False) for key in calls),
                applied=tuple(reply.id for reply in claim.replies),
            )
            eager = ClaimRequest(WORKER, ("a",))
            if fail:
                with pytest.raises(KeyboardInterrupt):
                    driver.store.commit([made], writes=_interrupt, eager=eager)
                assert check(driver.store) == []
            driver.store.commit([made], eager=eager)

        driver.register()
        driver.enqueue(lane="l", timeout=timedelta(days=2))
        driver.enqueue(lane="l", delay=timedelta(hours=1))
        driver.enqueue(lane="m", name="b")
        commit(driver.take("b"), close=True)
        commit(driver.take(), calls=("a", "b", "c"))
        running = [t for t in driver.store.find_tasks() if t.fence is not None]
        assert [task.name for task in running] == ["a"]
        assert running[0].fence is not None
        commit(Claim(running[0], running[0].fence, ()), close=True)
        commit(driver.take("b"), close=True)
        commit(driver.take("c"), close=True)
        commit(driver.take(), close=True)
        driver.harness.advance(timedelta(hours=1))
        commit(driver.take(), close=True)
        assert driver.claim(n=9) == []
        return [
            (task.name, task.state, task.outcome, task.seq, task.commits)
            for task in driver.store.find_tasks()
        ]

    undisturbed = play(Driver(MemoryHarness()), fail=False)
    assert play(Driver(MemoryHarness()), fail=True) == undisturbed


def test_an_extension_that_is_undone_leaves_the_deadline_where_it_was() -> None:
    driver = Driver(MemoryHarness())
    driver.register("w", "work")
    task = driver.enqueue(timeout=timedelta(minutes=1))
    fence = driver.take().fence
    store = driver.store
    assert isinstance(store, MemoryStore)
    with suppress(ZeroDivisionError), store._transaction as rows:
        commits.extend(rows, fence, timedelta(hours=1))
        raise ZeroDivisionError
    driver.harness.advance(timedelta(minutes=2))
    assert store.sweep().tasks_timed_out == 1
    assert driver.task(task.id).deadline == task.deadline


# What is over goes


def test_a_lock_that_has_expired_goes_when_somebody_looks() -> None:
    harness = MemoryHarness()
    for number in range(3):
        harness.store.acquire_lock(f"k{number}", "t", timedelta(minutes=1))
    harness.advance(timedelta(hours=1))
    assert harness.store.get_lock("k0") is None
    assert not harness.store.extend_lock("k1", "t", timedelta(minutes=1))
    assert not harness.store.release_lock("k2", "t")
    assert harness.store._rows.locks == {}


def test_a_deadline_that_moves_often_leaves_nothing_behind(store: MemoryStore) -> None:
    store.enqueue([replace(WORK, timeout=timedelta(minutes=1))])
    (claim,) = store.claim(ClaimRequest(WORKER, ("work",)))
    for minutes in range(2, 1000):
        store.extend(claim.fence, timedelta(minutes=minutes))
    assert len(store._rows.deadlines._heap) < 200


# Copies


def test_nothing_that_is_handed_out_leads_back_into_the_store() -> None:
    driver = Driver(MemoryHarness())
    driver.register()
    store = driver.store
    content = {"n": [1]}
    card = Card(card_hash("note", {"n": [1]}), "note", content)  # type: ignore[arg-type]
    store.put_cards([card])
    store.append_box("box", [card.hash], 0)
    caller = driver.caller("a", input={"n": [1]})
    store.reply(caller.calls["a"], CallStatus.OK, {"n": [1]})
    store.reply(caller.calls["a"], CallStatus.OK, {"n": [1, 2]})
    store.acquire_lock("k", "t", timedelta(hours=1), {"n": [1]})
    claim = driver.take("caller")

    def values() -> list[object]:
        lock = store.get_lock("k")
        assert lock is not None
        return [
            driver.task(claim.task.id).input,
            driver.call(caller.calls["a"]).reply,
            store.calls_of(claim.task.id)[0].reply,
            store.find_tasks()[0].input,
            store.get_cards([card.hash])[0].content,
            store.read_box("box")[0].content,
            *(entry.body for entry in store.read_outbox()),
            lock.meta,
        ]

    before = repr(values())
    content["n"].append(2)
    for value in [*values(), claim.task.input, claim.replies[0].reply]:
        assert isinstance(value, dict)
        value.clear()
    assert repr(values()) == before


# The heap


def test_a_heap_gives_the_smallest_first_and_forgets() -> None:
    heap: KeyedHeap[str, int] = KeyedHeap()
    for item, key in (("c", 3), ("a", 1), ("b", 2)):
        heap.add(item, key)
    heap.discard("a")
    heap.discard("nothing")
    assert heap.first() == (2, "b")
    assert heap.up_to(2, 9) == ["b"]
    assert heap.up_to(9, 1) == ["b"]
    assert (len(heap), sorted(heap)) == (2, ["b", "c"])
    heap.discard("b")
    heap.discard("c")
    assert heap.first() is None


def test_a_heap_does_not_grow_with_what_has_gone() -> None:
    heap: KeyedHeap[int, int] = KeyedHeap()
    heap.add(-1, -1)
    for number in range(10_000):
        heap.add(number, number)
        heap.discard(number)
    assert len(heap._heap) < 200
    assert heap.first() == (-1, -1)
