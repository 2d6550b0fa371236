"""Taking tasks, and who may."""

from __future__ import annotations

from datetime import timedelta

import pytest

from afl.kernel.errors import NotFound
from afl.kernel.model import (
    ClaimRequest,
    ReasonCode,
    State,
    WorkerId,
    WorkerSpec,
    WorkerState,
)
from afl.testing.conformance.cases.base import Cases
from afl.testing.conformance.driver import HOUR, MINUTE, NOBODY, SECOND, Driver
from afl.testing.conformance.harness import Harness


class ClaimCases(Cases):
    def test_a_claim_hands_out_the_task_and_a_fence(self, driver: Driver) -> None:
        task = driver.enqueue(input={"a": 1})
        claim = driver.take()
        assert claim.task.id == task.id
        assert claim.task.state is State.RUNNING
        assert claim.task.worker == "w"
        assert claim.task.fence == claim.fence
        assert claim.task.input == {"a": 1}
        assert claim.task.reason is None
        assert claim.replies == ()
        assert driver.task(task.id) == claim.task

    def test_no_task_is_taken_twice(self, driver: Driver) -> None:
        driver.enqueue()
        assert len(driver.claim(n=5)) == 1
        assert driver.claim(n=5) == []

    def test_fences_increase(self, driver: Driver) -> None:
        for _ in range(3):
            driver.enqueue()
        fences = [claim.fence for claim in driver.claim(n=2) + driver.claim()]
        assert fences == sorted(set(fences))

    def test_the_order_is_priority_then_time_then_age(
        self, driver: Driver, harness: Harness
    ) -> None:
        late = driver.enqueue(delay=2 * MINUTE)
        soon = driver.enqueue(delay=MINUTE)
        low = driver.enqueue(priority=-1)
        first, second = driver.enqueue(), driver.enqueue()
        high = driver.enqueue(priority=1)
        harness.advance(HOUR)
        order = [claim.task.id for claim in driver.claim(n=9)]
        assert order == [high.id, first.id, second.id, soon.id, late.id, low.id]

    def test_no_more_than_asked_for(self, driver: Driver) -> None:
        for _ in range(3):
            driver.enqueue()
        assert len(driver.claim(n=2)) == 2
        assert driver.claim(n=0) == []
        assert len(driver.claim(n=2)) == 1

    @pytest.mark.parametrize(
        ("served", "name", "fits"),
        [
            ("Pay", "Pay", True),
            ("Pay", "billing.Pay", True),
            ("Pay", "a.b.Pay", True),
            ("billing.Pay", "billing.Pay", True),
            ("billing.Pay", "other.Pay", False),
            ("billing.Pay", "Pay", False),
            ("ay", "billing.Pay", False),
            ("pay", "Pay", False),
        ],
    )
    def test_names_match_exactly_or_by_their_short_form(
        self, driver: Driver, served: str, name: str, fits: bool
    ) -> None:
        driver.enqueue(name)
        assert len(driver.claim(served)) == int(fits)

    def test_a_worker_claims_from_its_lists_under_all_its_names(self, driver: Driver) -> None:
        driver.enqueue("a", list="slow")
        driver.enqueue("x.b")
        driver.enqueue("a", list="other")
        request = ClaimRequest(WorkerId("w"), ("a", "b"), ("slow", "default"), n=9)
        assert [claim.task.name for claim in driver.store.claim(request)] == ["a", "x.b"]

    def test_a_repeated_request_gets_the_same_claims(self, driver: Driver) -> None:
        for _ in range(4):
            driver.enqueue()
        first = driver.claim(n=2, token="t")
        assert driver.claim(n=2, token="t") == first
        driver.commit(first[0].fence)
        assert driver.claim(n=2, token="t") == first[1:]
        others = driver.claim(n=2, token="u")
        assert {claim.task.id for claim in others}.isdisjoint(c.task.id for c in first)

    def test_a_token_is_the_workers_own(self, driver: Driver) -> None:
        driver.register("v")
        driver.enqueue()
        driver.enqueue()
        (mine,) = driver.claim(token="t")
        (other,) = driver.claim(token="t", worker="v")
        assert mine.task.id != other.task.id

    def test_only_a_live_worker_can_claim(self, driver: Driver, harness: Harness) -> None:
        driver.enqueue()
        with pytest.raises(NotFound):
            driver.claim(worker="nobody")
        driver.register("v", lease=MINUTE)
        driver.store.set_worker_state(WorkerId("v"), WorkerState.SHUTDOWN)
        with pytest.raises(NotFound):
            driver.claim(worker="v")
        driver.register("v", lease=MINUTE)
        harness.advance(HOUR)
        with pytest.raises(NotFound):
            driver.claim(worker="v")
        driver.store.renew(WorkerId("v"))
        assert len(driver.claim(worker="v")) == 1


class WorkerCases(Cases):
    def test_every_field_of_a_worker_is_kept(self, driver: Driver) -> None:
        spec = WorkerSpec(
            id=WorkerId("v"),
            name="blue",
            group="gpu",
            service="runner",
            lists=("a", "b"),
            handlers=("Pay", "x.Y"),
            slots=4,
            lease=MINUTE,
        )
        worker = driver.store.register(spec)
        assert driver.store.get_worker(WorkerId("v")) == worker
        for name in ("id", "name", "group", "service", "lists", "handlers", "slots", "lease"):
            assert getattr(worker, name) == getattr(spec, name)
        assert worker.state is WorkerState.STARTUP
        assert worker.expires_at == worker.seen_at + MINUTE
        assert driver.store.get_worker(WorkerId("nobody")) is None

    def test_live_workers_renew_in_time_and_have_not_ended(
        self, driver: Driver, harness: Harness
    ) -> None:
        driver.register("short", lease=MINUTE)
        driver.register("ended")
        driver.store.set_worker_state(WorkerId("ended"), WorkerState.SHUTDOWN)
        assert [worker.id for worker in driver.store.live_workers()] == ["short", "w"]
        harness.advance(2 * MINUTE)
        assert [worker.id for worker in driver.store.live_workers()] == ["w"]

    def test_workers_that_were_heard_of_lately_are_known_whatever_became_of_them(
        self, driver: Driver, harness: Harness
    ) -> None:
        driver.register("early", lease=SECOND)
        harness.advance(MINUTE)
        driver.register("late")
        driver.store.set_worker_state(WorkerId("late"), WorkerState.SHUTDOWN)
        hour = 60 * MINUTE
        seen = [worker.id for worker in driver.store.workers_seen(hour)]
        assert seen[0] == "late"
        assert {"early", "late"} <= set(seen)
        assert [worker.id for worker in driver.store.workers_seen(hour, limit=1)] == ["late"]
        harness.advance(30 * SECOND)
        assert [worker.id for worker in driver.store.workers_seen(MINUTE)] == ["late"]

    def test_renewing_moves_the_expiry(self, driver: Driver, harness: Harness) -> None:
        driver.register("v", lease=MINUTE)
        before = driver.store.get_worker(WorkerId("v"))
        harness.advance(30 * SECOND)
        renewal = driver.store.renew(WorkerId("v"))
        after = driver.store.get_worker(WorkerId("v"))
        assert before is not None
        assert after is not None
        assert after.expires_at == renewal.expires_at
        assert renewal.expires_at - before.expires_at >= timedelta(seconds=30)
        assert (renewal.lost, renewal.stop) == ((), ())

    def test_renewing_tells_what_is_lost_and_what_shall_stop(self, driver: Driver) -> None:
        tasks = [driver.enqueue() for _ in range(4)]
        kept, stopping, forced, done = (claim.fence for claim in driver.claim(n=4))
        driver.store.stop(tasks[1].id)
        driver.store.stop(tasks[2].id, force=True)
        driver.commit(done)
        renewal = driver.store.renew(WorkerId("w"), [kept, stopping, forced, done, 10**9])
        assert renewal.lost == (forced, done, 10**9)
        assert renewal.stop == (stopping,)

    def test_a_fence_of_another_worker_is_lost(self, driver: Driver) -> None:
        driver.register("v")
        driver.enqueue()
        fence = driver.take().fence
        assert driver.store.renew(WorkerId("v"), [fence]).lost == (fence,)

    def test_unknown_workers_are_not_found(self, driver: Driver) -> None:
        with pytest.raises(NotFound):
            driver.store.renew(WorkerId("nobody"))
        with pytest.raises(NotFound):
            driver.store.set_worker_state(WorkerId("nobody"), WorkerState.RUNNING)

    def test_registering_again_keeps_the_tasks(self, driver: Driver) -> None:
        driver.enqueue()
        claim = driver.take()
        driver.register("w", "work", "caller")
        assert driver.store.renew(WorkerId("w"), [claim.fence]).lost == ()
        assert driver.commit(claim.fence).task.state is State.CLOSED

    def test_why_tells_whether_anybody_serves_a_task(
        self, driver: Driver, harness: Harness
    ) -> None:
        served, unserved = driver.enqueue("x.work"), driver.enqueue("rare")
        elsewhere, delayed = driver.enqueue(list="slow"), driver.enqueue(delay=MINUTE)
        codes = {
            task.id: driver.store.why(task.id) for task in (served, unserved, elsewhere, delayed)
        }
        assert [reason.code for reason in codes.values() if reason is not None] == [
            ReasonCode.CLAIMABLE,
            ReasonCode.NO_WORKER,
            ReasonCode.NO_WORKER,
            ReasonCode.DELAYED,
        ]
        harness.advance(HOUR)
        reason = driver.store.why(delayed.id)
        assert reason is not None
        assert reason.code is ReasonCode.CLAIMABLE
        with pytest.raises(NotFound):
            driver.store.why(NOBODY)
