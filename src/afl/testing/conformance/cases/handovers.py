"""Finishing something and taking the next in one transaction."""

from __future__ import annotations

from dataclasses import replace

import pytest

from afl.kernel.errors import Fenced
from afl.kernel.model import (
    CardSpec,
    ClaimRequest,
    Close,
    Commit,
    Fence,
    Outcome,
    State,
    Suspend,
    WorkerId,
    WorkerState,
)
from afl.kernel.port import Transaction
from afl.testing.conformance.cases.base import Cases
from afl.testing.conformance.driver import DONE, HOUR, MINUTE, Driver, call
from afl.testing.conformance.harness import Harness

_NEXT = ClaimRequest(WorkerId("w"), ("work", "caller", "a", "b"), n=3, token="next")


class HandoverCases(Cases):
    def test_the_next_comes_with_the_end_of_the_last(self, driver: Driver) -> None:
        driver.enqueue()
        done = driver.take()
        low = driver.enqueue(priority=-1)
        high = driver.enqueue("x.a", priority=1)
        driver.enqueue("unserved", priority=2)
        (committed,), claims = driver.store.commit_and_claim([Commit(done.fence, DONE)], _NEXT)
        assert committed.task.outcome is Outcome.SUCCESS
        assert committed.eager == ()
        assert [claim.task.id for claim in claims] == [high.id, low.id]
        for claim in claims:
            assert (claim.task.state, claim.task.worker) == (State.RUNNING, "w")
            assert claim.fence > done.fence
            assert driver.task(claim.task.id) == claim.task
            assert driver.commit(claim.fence).task.state is State.CLOSED

    def test_what_the_commit_has_made_ready_can_be_the_next(self, driver: Driver) -> None:
        caller = driver.caller("a")
        queued = driver.enqueue(lane="l")
        holder = driver.take()
        behind = driver.enqueue(lane="l", priority=1)
        callee = driver.take("a")
        commits = [
            Commit(callee.fence, Close(Outcome.SUCCESS, 7)),
            Commit(holder.fence, DONE),
        ]
        _, claims = driver.store.commit_and_claim(commits, _NEXT)
        assert holder.task.id == queued.id
        assert [claim.task.id for claim in claims] == [behind.id, caller.task.id]
        (reply,) = claims[1].replies
        assert (reply.key, reply.reply) == ("a", 7)

    def test_callees_come_first_and_count(self, driver: Driver) -> None:
        driver.enqueue("caller")
        fence = driver.take("caller").fence
        urgent = driver.enqueue("b", priority=9)
        driver.enqueue("b")
        calls = (call("1", "a"), call("2", "unserved"), call("3", "a", priority=1))
        commit = Commit(fence, Suspend(), calls=calls)
        (committed,), claims = driver.store.commit_and_claim([commit], _NEXT)
        assert committed.task.state is State.WAITING
        assert tuple(claims[:2]) == committed.eager
        assert [claim.task.parent_call for claim in claims] == [
            committed.calls["3"],
            committed.calls["1"],
            None,
        ]
        assert claims[2].task.id == urgent.id
        assert [claim.fence for claim in claims] == sorted(claim.fence for claim in claims)

    def test_no_more_than_asked_for(self, driver: Driver) -> None:
        driver.enqueue("caller")
        fence = driver.take("caller").fence
        waiting = driver.enqueue("b")
        commit = Commit(fence, Suspend(), calls=(call("1", "a"), call("2", "a")))
        (committed,), claims = driver.store.commit_and_claim([commit], replace(_NEXT, n=1))
        assert tuple(claims) == committed.eager
        assert len(claims) == 1
        assert driver.callee(committed.calls["2"]).state is State.READY
        assert driver.task(waiting.id).state is State.READY
        closed, none = driver.store.commit_and_claim(
            [Commit(claims[0].fence, DONE)], replace(_NEXT, n=0, token=None)
        )
        assert (closed[0].task.outcome, none) == (Outcome.SUCCESS, [])

    def test_without_commits_it_is_a_claim(self, driver: Driver, harness: Harness) -> None:
        task = driver.enqueue()
        answers, claims = driver.store.commit_and_claim([], _NEXT, writes=harness.mark("once"))
        assert answers == []
        assert [claim.task.id for claim in claims] == [task.id]
        assert harness.marks() == ["once"]

    def test_a_request_whose_answer_was_lost_takes_nothing_twice(
        self, driver: Driver, harness: Harness
    ) -> None:
        driver.enqueue("caller")
        fence = driver.take("caller").fence
        driver.enqueue("b")
        commit = Commit(fence, Suspend(), cards=(CardSpec("note", 1),), calls=(call("a"),))
        writes = harness.mark("once")
        first = driver.store.commit_and_claim([commit], _NEXT, writes=writes)
        driver.enqueue("b")
        again = driver.store.commit_and_claim([commit], _NEXT, writes=writes)
        assert again == first
        assert len(first[1]) == 2
        assert harness.marks() == ["once"]
        assert len(driver.store.read_box(first[0][0].task.id)) == 1

    def test_a_token_that_still_holds_something_takes_no_more(self, driver: Driver) -> None:
        driver.enqueue()
        driver.enqueue()
        one, two = driver.claim(n=2, token="next")
        driver.enqueue("b")
        _, claims = driver.store.commit_and_claim([Commit(one.fence, DONE)], _NEXT)
        assert claims == [two]
        commit = Commit(two.fence, Suspend(), calls=(call("a"),))
        (committed,), claims = driver.store.commit_and_claim([commit], _NEXT)
        assert [claim.task.name for claim in claims] == ["a", "b"]
        assert tuple(claims[:1]) == committed.eager

    def test_a_token_that_holds_something_takes_no_callees_either(self, driver: Driver) -> None:
        driver.enqueue("caller")
        fence = driver.take("caller").fence
        driver.enqueue()
        held = driver.claim(token="next")
        commit = Commit(fence, Suspend(), calls=(call("a"),))
        (committed,), claims = driver.store.commit_and_claim([commit], _NEXT)
        assert (committed.eager, claims) == ((), held)
        assert driver.callee(committed.calls["a"]).state is State.READY

    @pytest.mark.parametrize("end", ["unknown", "ended", "expired"])
    def test_a_worker_that_is_not_live_commits_and_takes_nothing(
        self, driver: Driver, harness: Harness, end: str
    ) -> None:
        driver.register("v", lease=MINUTE)
        driver.enqueue("caller")
        fence = driver.take("caller", worker="v").fence
        waiting = driver.enqueue("b")
        if end == "ended":
            driver.store.set_worker_state(WorkerId("v"), WorkerState.SHUTDOWN)
        elif end == "expired":
            harness.advance(HOUR)
        worker = WorkerId("nobody" if end == "unknown" else "v")
        commit = Commit(fence, Suspend(), calls=(call("a"),))
        (committed,), claims = driver.store.commit_and_claim(
            [commit], replace(_NEXT, worker=worker)
        )
        assert (committed.task.state, committed.eager, claims) == (State.WAITING, (), [])
        assert driver.callee(committed.calls["a"]).state is State.READY
        assert driver.task(waiting.id).state is State.READY

    def test_a_fenced_commit_takes_nothing(self, driver: Driver, harness: Harness) -> None:
        driver.enqueue()
        held = driver.take()
        waiting = driver.enqueue()
        with pytest.raises(Fenced):
            driver.store.commit_and_claim(
                [Commit(held.fence, DONE), Commit(Fence(10**9), DONE)],
                _NEXT,
                writes=harness.mark("x"),
            )
        assert driver.task(held.task.id) == held.task
        assert driver.task(waiting.id) == waiting
        assert harness.marks() == []

    def test_writes_that_raise_take_nothing(self, driver: Driver, harness: Harness) -> None:
        driver.enqueue("caller")
        held = driver.take("caller")
        waiting = driver.enqueue("b")

        def fail(transaction: Transaction) -> None:
            harness.mark("half")(transaction)
            raise ZeroDivisionError

        commit = Commit(held.fence, Suspend(), calls=(call("a"),))
        with pytest.raises(ZeroDivisionError):
            driver.store.commit_and_claim([commit], _NEXT, writes=fail)
        assert driver.task(held.task.id) == held.task
        assert driver.task(waiting.id) == waiting
        assert harness.marks() == []
        assert len(driver.store.find_tasks()) == 2
        _, claims = driver.store.commit_and_claim([commit], _NEXT, writes=harness.mark("whole"))
        assert [claim.task.name for claim in claims] == ["a", "b"]
        assert harness.marks() == ["whole"]

    def test_a_task_that_goes_back_may_come_again(self, driver: Driver) -> None:
        driver.enqueue()
        first = driver.take()
        (committed,), (again,) = driver.store.commit_and_claim(
            [Commit(first.fence, Suspend())], _NEXT
        )
        assert committed.task.state is State.READY
        assert again.task.id == first.task.id
        assert again.fence > first.fence
