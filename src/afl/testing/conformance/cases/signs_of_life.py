"""Signs of life: a handler moves its deadline, a worker gives back what it did not ask for."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from afl.kernel.errors import BadRequest, Fenced
from afl.kernel.model import (
    CallStatus,
    Continue,
    Fence,
    Outcome,
    ReasonCode,
    State,
    Suspend,
    Task,
    WorkerId,
)
from afl.testing.conformance.cases.base import Cases
from afl.testing.conformance.driver import DAY, HOUR, MINUTE, SECOND, SLACK, Driver, call
from afl.testing.conformance.harness import Harness


def _is_from(moment: datetime | None, start: datetime, distance: timedelta) -> bool:
    return moment is not None and timedelta(0) <= moment - start - distance <= SLACK


class ExtendCases(Cases):
    def test_a_sign_of_life_moves_the_deadline(self, driver: Driver, harness: Harness) -> None:
        task = driver.enqueue(timeout=MINUTE)
        claim = driver.take()
        deadline = driver.store.extend(claim.fence, HOUR)
        assert _is_from(deadline, task.created_at, HOUR)
        moved = driver.task(task.id)
        assert moved.deadline == deadline
        assert (moved.state, moved.fence, moved.commits) == (State.RUNNING, claim.fence, 0)
        harness.advance(30 * MINUTE)
        assert driver.sweep_all() == 0
        harness.advance(HOUR)
        driver.sweep_all()
        assert driver.task(task.id).outcome is Outcome.TIMEOUT

    def test_a_deadline_never_comes_earlier(self, driver: Driver) -> None:
        task = driver.enqueue(timeout=HOUR)
        fence = driver.take().fence
        assert driver.store.extend(fence, MINUTE) == task.deadline
        assert driver.task(task.id).deadline == task.deadline

    def test_a_deadline_that_nobody_has_looked_at_can_still_be_moved(
        self, driver: Driver, harness: Harness
    ) -> None:
        task = driver.enqueue(timeout=MINUTE)
        fence = driver.take().fence
        harness.advance(HOUR)
        driver.store.extend(fence, HOUR)
        assert driver.sweep_all() == 0
        assert driver.commit(fence).task.id == task.id

    def test_a_task_without_a_deadline_gets_none(self, driver: Driver) -> None:
        task = driver.enqueue()
        assert driver.store.extend(driver.take().fence, HOUR) is None
        assert driver.task(task.id).deadline is None

    def test_the_deadline_of_the_call_moves_too(self, driver: Driver, harness: Harness) -> None:
        caller, callee, fence = self._callee(driver, timeout=MINUTE, task_timeout=30 * SECOND)
        deadline = driver.store.extend(fence, HOUR)
        assert _is_from(deadline, callee.created_at, HOUR)
        assert driver.task(callee.id).deadline == deadline
        (moved,) = driver.store.calls_of(caller.id)
        assert (moved.deadline, moved.status) == (deadline, CallStatus.OPEN)
        reason = driver.store.why(caller.id)
        assert reason is not None
        assert (reason.code, reason.until) == (ReasonCode.CALLS_OPEN, deadline)
        harness.advance(30 * MINUTE)
        assert driver.sweep_all() == 0
        harness.advance(HOUR)
        assert driver.store.sweep().calls_timed_out == 1

    def test_the_first_of_the_two_deadlines_is_the_answer(self, driver: Driver) -> None:
        caller, callee, fence = self._callee(driver, timeout=HOUR, task_timeout=MINUTE)
        (before,) = driver.store.calls_of(caller.id)
        deadline = driver.store.extend(fence, 2 * MINUTE)
        assert _is_from(deadline, callee.created_at, 2 * MINUTE)
        assert driver.task(callee.id).deadline == deadline
        assert driver.store.calls_of(caller.id) == [before]

    def test_no_deadline_moves_past_the_callers_own(self, driver: Driver) -> None:
        caller, callee, fence = self._callee(driver, timeout=MINUTE, caller_timeout=HOUR)
        assert caller.deadline is not None
        assert driver.store.extend(fence, DAY) == caller.deadline
        assert driver.task(callee.id).deadline == caller.deadline
        (moved,) = driver.store.calls_of(caller.id)
        assert moved.deadline == caller.deadline
        assert driver.task(caller.id).deadline == caller.deadline

    def test_a_fence_that_is_not_held_moves_nothing(self, driver: Driver) -> None:
        task = driver.enqueue(timeout=MINUTE)
        old = driver.take().fence
        driver.commit(old, Suspend())
        before = driver.task(task.id)
        for fence in (old, Fence(10**9)):
            with pytest.raises(Fenced):
                driver.store.extend(fence, HOUR)
        assert driver.task(task.id) == before
        new = driver.take().fence
        with pytest.raises(Fenced):
            driver.store.extend(old, HOUR)
        driver.store.extend(new, HOUR)

    @pytest.mark.parametrize("by", [timedelta(0), -MINUTE], ids=str)
    def test_an_extension_goes_forward(self, driver: Driver, by: timedelta) -> None:
        driver.enqueue(timeout=MINUTE)
        claim = driver.take()
        with pytest.raises(BadRequest):
            driver.store.extend(claim.fence, by)
        assert driver.task(claim.task.id) == claim.task

    @staticmethod
    def _callee(
        driver: Driver,
        *,
        timeout: timedelta,
        task_timeout: timedelta | None = None,
        caller_timeout: timedelta | None = None,
    ) -> tuple[Task, Task, Fence]:
        """A caller that waits, its one callee, and the callee's fence."""
        driver.enqueue("caller", timeout=caller_timeout)
        calls = (call("a", timeout=timeout, task_timeout=task_timeout),)
        caller = driver.commit(driver.take("caller").fence, Suspend(), calls=calls).task
        claim = driver.take("a")
        return caller, claim.task, claim.fence


class StrayCases(Cases):
    def test_a_fence_that_the_worker_does_not_name_is_stray(self, driver: Driver) -> None:
        driver.register("v")
        for _ in range(4):
            driver.enqueue()
        first, named, last = (claim.fence for claim in driver.claim(n=3))
        driver.claim(worker="v")
        renewal = driver.store.renew(WorkerId("w"), [named, 10**9])
        assert renewal.stray == (first, last)
        assert (renewal.lost, renewal.stop) == ((10**9,), ())
        assert driver.store.renew(WorkerId("w"), [last, first, named]).stray == ()

    def test_what_is_no_longer_held_is_not_stray(self, driver: Driver) -> None:
        for _ in range(4):
            driver.enqueue()
        closed, waiting, forced, asked = driver.claim(n=4)
        driver.commit(closed.fence)
        driver.commit(waiting.fence, Suspend(), calls=(call("a"),))
        driver.store.stop(forced.task.id, force=True)
        driver.store.stop(asked.task.id)
        assert driver.store.renew(WorkerId("w")).stray == (asked.fence,)

    def test_a_stray_task_that_is_given_back_is_ready_again(self, driver: Driver) -> None:
        task = driver.enqueue()
        driver.claim(token="lost")
        (stray,) = driver.store.renew(WorkerId("w")).stray
        assert driver.commit(stray, Suspend()).task.state is State.READY
        assert driver.store.renew(WorkerId("w")).stray == ()
        again = driver.take()
        assert (again.task.id, again.task.crashes) == (task.id, 0)
        assert again.fence > stray

    def test_a_late_copy_of_a_claim_leaves_a_stray(self, driver: Driver) -> None:
        driver.enqueue()
        (claim,) = driver.claim(token="t")
        driver.commit(claim.fence)
        late = driver.enqueue()
        (unknown,) = driver.claim(token="t")
        assert unknown.task.id == late.id
        assert driver.store.renew(WorkerId("w")).stray == (unknown.fence,)

    def test_what_a_worker_had_before_it_was_registered_again_is_stray(
        self, driver: Driver
    ) -> None:
        driver.enqueue()
        claim = driver.take()
        driver.commit(claim.fence, Continue())
        driver.register("w", "work", "caller")
        (stray,) = driver.store.renew(WorkerId("w")).stray
        assert stray == claim.fence
        # its former self has committed: the answer to number 0 tells the number that comes next
        held = driver.commit(stray, Suspend()).task
        assert (held.state, held.fence, held.commits) == (State.RUNNING, stray, 1)
        assert driver.commit(stray, Suspend(), number=held.commits).task.state is State.READY
