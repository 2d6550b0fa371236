"""Pairs of transactions that touch the same rows, in both orders, with the first committed or
rolled back. Whatever the order, the invariants hold and nobody is forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from afl.kernel.model import (
    CallId,
    CallSpec,
    CallStatus,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Continue,
    Outcome,
    State,
    Stopped,
    Suspend,
    Task,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.postgres.store import PostgresStore
from afl.testing.conformance.invariants import check
from tests.kernel.postgres.interleaving import two_players

W = WorkerId("w")
HOUR = timedelta(hours=1)
DONE = Close(Outcome.SUCCESS, result="done")
both_ends = pytest.mark.parametrize("commit", [True, False], ids=["commit", "rollback"])


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with PostgresStore.connect(url, max_size=2) as store:
        store.register(WorkerSpec(W, "w", handlers=("a", "b"), lease=HOUR))
        # or else one that makes the first task of a level waits for another that does
        store._levels.register([TaskSpec("test", "a"), TaskSpec("test", "b")])
        yield store
        assert check(store) == []


def enqueue(store: PostgresStore, name: str = "a", lane: str | None = None) -> Task:
    return store.enqueue([TaskSpec("test", name, lane=lane)])[0]


def claim(store: PostgresStore, name: str = "a") -> list[Claim]:
    return store.claim(ClaimRequest(W, (name,)))


def close(store: PostgresStore, held: Claim) -> Task:
    return store.commit([Commit(held.fence, DONE)])[0].task


def state(store: PostgresStore, task: Task) -> State:
    found = store.get_task(task.id)
    assert found is not None
    return found.state


class TestEnqueueAndCloseInOneLane:
    @both_ends
    def test_close_first(self, url: str, store: PostgresStore, commit: bool) -> None:
        enqueue(store, lane="l")
        (held,) = claim(store)
        with two_players(url) as table:
            close(table.first, held)
            second = table.second_starts(lambda s: enqueue(s, lane="l"))
            assert not second.done()
            table.end_first(commit=commit)
            late = second.result()
        assert late.state is (State.READY if commit else State.QUEUED)
        if not commit:
            close(store, held)
        assert state(store, late) is State.READY

    @both_ends
    def test_enqueue_first(self, url: str, store: PostgresStore, commit: bool) -> None:
        enqueue(store, lane="l")
        (held,) = claim(store)
        with two_players(url) as table:
            late = enqueue(table.first, lane="l")
            assert late.state is State.QUEUED
            second = table.second_starts(lambda s: close(s, held))
            assert not second.done()
            table.end_first(commit=commit)
            assert second.result().state is State.CLOSED
        if commit:
            assert state(store, late) is State.READY
        else:
            assert store.get_task(late.id) is None
            assert enqueue(store, lane="l").state is State.READY

    @both_ends
    def test_two_comers_to_a_free_lane(self, url: str, store: PostgresStore, commit: bool) -> None:
        with two_players(url) as table:
            assert enqueue(table.first, lane="l").state is State.READY
            second = table.second_starts(lambda s: enqueue(s, lane="l"))
            assert not second.done()
            table.end_first(commit=commit)
            assert second.result().state is (State.QUEUED if commit else State.READY)

    @both_ends
    def test_one_idem_twice(self, url: str, store: PostgresStore, commit: bool) -> None:
        spec = TaskSpec("test", "a", idem="i", lane="l")
        with two_players(url) as table:
            (first,) = table.first.enqueue([spec])
            second = table.second_starts(lambda s: s.enqueue([spec])[0])
            assert not second.done()
            table.end_first(commit=commit)
            assert (second.result().id == first.id) is commit
        assert len(store.find_tasks()) == 1


class TestReplyAndCommit:
    @both_ends
    def test_reply_first(self, url: str, store: PostgresStore, commit: bool) -> None:
        caller, call = self._caller(store)
        with two_players(url) as table:
            assert table.first.reply(call, CallStatus.OK, 1)
            second = table.second_starts(lambda s: s.commit([Commit(caller.fence, Suspend(), 1)]))
            assert not second.done()
            table.end_first(commit=commit)
            suspended = second.result()[0].task
        assert suspended.state is (State.READY if commit else State.WAITING)
        assert store.reply(call, CallStatus.OK, 1)
        assert state(store, caller.task) is State.READY

    @both_ends
    def test_commit_first(self, url: str, store: PostgresStore, commit: bool) -> None:
        caller, call = self._caller(store)
        with two_players(url) as table:
            table.first.commit([Commit(caller.fence, Suspend(), 1)])
            second = table.second_starts(lambda s: s.reply(call, CallStatus.OK, 1))
            assert not second.done()
            table.end_first(commit=commit)
            assert second.result()
        assert state(store, caller.task) is (State.READY if commit else State.RUNNING)

    @staticmethod
    def _caller(store: PostgresStore) -> tuple[Claim, CallId]:
        """A running task with an open call."""
        enqueue(store)
        (caller,) = claim(store)
        spec = CallSpec("k", TaskSpec("test", "b"), HOUR)
        (committed,) = store.commit([Commit(caller.fence, Continue(), calls=(spec,))])
        return caller, committed.calls["k"]


class TestReplyAndClose:
    @both_ends
    def test_close_of_the_callee_first(self, url: str, store: PostgresStore, commit: bool) -> None:
        caller, call, callee = self._waiting(store)
        with two_players(url) as table:
            close(table.first, callee)
            second = table.second_starts(lambda s: s.reply(call, CallStatus.ERROR, "other"))
            assert not second.done()
            table.end_first(commit=commit)
            assert second.result() is not commit
        late = [entry for entry in store.read_outbox() if entry.topic == "late"]
        assert len(late) == commit
        assert state(store, caller) is State.READY

    @both_ends
    def test_reply_first(self, url: str, store: PostgresStore, commit: bool) -> None:
        caller, call, callee = self._waiting(store)
        with two_players(url) as table:
            assert table.first.reply(call, CallStatus.ERROR, "other")
            second = table.second_starts(lambda s: close(s, callee))
            assert not second.done()
            table.end_first(commit=commit)
            assert second.result().state is State.CLOSED
        answered = store.get_call(call)
        assert answered is not None
        assert answered.reply == ("other" if commit else "done")
        assert state(store, caller) is State.READY

    @both_ends
    def test_stop_of_the_caller_first(self, url: str, store: PostgresStore, commit: bool) -> None:
        caller, _call, callee = self._waiting(store)
        with two_players(url) as table:
            assert table.first.stop(caller.id) is Stopped.CLOSED
            second = table.second_starts(lambda s: close(s, callee))
            assert not second.done()
            table.end_first(commit=commit)
            assert second.result().state is State.CLOSED
        assert state(store, caller) is (State.CLOSED if commit else State.READY)

    @staticmethod
    def _waiting(store: PostgresStore) -> tuple[Task, CallId, Claim]:
        """A waiting task, its call, and the callee in a worker's hands."""
        enqueue(store)
        (caller,) = claim(store)
        spec = CallSpec("k", TaskSpec("test", "b"), HOUR)
        (committed,) = store.commit([Commit(caller.fence, Suspend(), calls=(spec,))])
        (callee,) = claim(store, "b")
        return committed.task, committed.calls["k"], callee


class TestStopAndClaim:
    @both_ends
    def test_stop_first(self, url: str, store: PostgresStore, commit: bool) -> None:
        task = enqueue(store)
        with two_players(url) as table:
            assert table.first.stop(task.id) is Stopped.CLOSED
            assert table.second_starts(claim).result() == []
            table.end_first(commit=commit)
        assert len(claim(store)) == (0 if commit else 1)

    @both_ends
    def test_claim_first(self, url: str, store: PostgresStore, commit: bool) -> None:
        task = enqueue(store)
        with two_players(url) as table:
            assert len(claim(table.first)) == 1
            second = table.second_starts(lambda s: s.stop(task.id))
            assert not second.done()
            table.end_first(commit=commit)
            assert second.result() is (Stopped.REQUESTED if commit else Stopped.CLOSED)

    @both_ends
    def test_two_claims(self, url: str, store: PostgresStore, commit: bool) -> None:
        enqueue(store)
        enqueue(store)
        with two_players(url) as table:
            (one,) = claim(table.first)
            (other,) = table.second_starts(claim).result()
            assert one.task.id < other.task.id
            table.end_first(commit=commit)
        assert len(claim(store)) == (0 if commit else 1)


class TestSweepAndRenew:
    """After twice the lease has passed for everybody."""

    LATER = 2 * HOUR

    @both_ends
    def test_renew_first(self, url: str, store: PostgresStore, commit: bool) -> None:
        enqueue(store)
        (held,) = claim(store)
        with two_players(url, self.LATER) as table:
            assert table.first.renew(W, [held.fence]).lost == ()
            swept = table.second_starts(lambda s: s.sweep()).result()
            assert swept.total == 0
            table.end_first(commit=commit)
            again = table.second.sweep()
        assert (again.workers_expired, again.tasks_recovered) == ((0, 0) if commit else (1, 1))
        assert state(store, held.task) is (State.RUNNING if commit else State.READY)

    @both_ends
    def test_sweep_first(self, url: str, store: PostgresStore, commit: bool) -> None:
        enqueue(store)
        (held,) = claim(store)
        with two_players(url, self.LATER) as table:
            assert table.first.sweep().tasks_recovered == 1
            second = table.second_starts(lambda s: s.renew(W, [held.fence]))
            assert not second.done()
            table.end_first(commit=commit)
            assert second.result().lost == ((held.fence,) if commit else ())
        assert state(store, held.task) is (State.READY if commit else State.RUNNING)


class TestSweepers:
    def test_two_sweepers_share_the_work(self, url: str, store: PostgresStore) -> None:
        for _ in range(3):
            enqueue(store)
            claim(store)
        with two_players(url, 2 * HOUR) as table:
            assert table.first.sweep().tasks_recovered == 3
            assert table.second_starts(lambda s: s.sweep()).result().total == 0
            table.end_first(commit=True)
        assert len(store.find_tasks(state=State.READY)) == 3


class TestQueuedTasks:
    """A closing task must hand its lane on although the next in the queue is being touched."""

    @both_ends
    def test_stop_of_the_next(self, url: str, store: PostgresStore, commit: bool) -> None:
        enqueue(store, lane="l")
        (held,) = claim(store)
        following, last = enqueue(store, lane="l"), enqueue(store, lane="l")
        with two_players(url) as table:
            assert table.first.stop(following.id) is Stopped.CLOSED
            second = table.pool.submit(close, table.second, held)
            table.end_first(commit=commit)
            assert second.result().state is State.CLOSED
        expected = last if commit else following
        assert [task.id for task in store.find_tasks(state=State.READY)] == [expected.id]
