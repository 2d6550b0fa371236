"""Lanes: one active task each, and who is next."""

from __future__ import annotations

import pytest

from afl.kernel.errors import LaneCycle
from afl.kernel.model import CallStatus, Continue, ReasonCode, State, Suspend, Wake
from afl.testing.conformance.cases.base import Cases
from afl.testing.conformance.driver import DAY, FAILED, HOUR, MINUTE, Driver, call
from afl.testing.conformance.harness import Harness


class LaneCases(Cases):
    def test_the_first_holds_the_lane_and_the_others_queue(self, driver: Driver) -> None:
        first, second = driver.enqueue(lane="l"), driver.enqueue(lane="l")
        assert (first.state, second.state) == (State.READY, State.QUEUED)
        assert second.reason is not None
        assert (second.reason.code, second.reason.by) == (ReasonCode.LANE_HELD, first.id)
        assert [claim.task.id for claim in driver.claim(n=9)] == [first.id]

    def test_lanes_are_apart_by_name_and_tenant(self, driver: Driver) -> None:
        states = [
            driver.enqueue(lane="l").state,
            driver.enqueue(lane="m").state,
            driver.enqueue(lane="l", tenant="acme").state,
            driver.enqueue().state,
        ]
        assert states == [State.READY] * 4

    def test_closing_promotes_by_priority_then_age(self, driver: Driver) -> None:
        driver.enqueue(lane="l")
        old, new = driver.enqueue(lane="l"), driver.enqueue(lane="l")
        urgent = driver.enqueue(lane="l", priority=1)
        order = []
        while claims := driver.claim(n=9):
            (claim,) = claims
            order.append(claim.task.id)
            driver.commit(claim.fence)
        assert order[1:] == [urgent.id, old.id, new.id]

    def test_the_lane_is_promoted_however_its_holder_ends(
        self, driver: Driver, harness: Harness
    ) -> None:
        tasks = [driver.enqueue(lane="l", timeout=DAY) for _ in range(4)]
        driver.store.stop(tasks[0].id)
        assert driver.task(tasks[1].id).state is State.READY
        driver.take()
        driver.store.stop(tasks[1].id, force=True)
        assert driver.task(tasks[2].id).state is State.READY
        driver.commit(driver.take().fence, FAILED)
        assert driver.task(tasks[3].id).state is State.READY
        harness.advance(2 * DAY)
        driver.sweep_all()
        assert driver.task(tasks[3].id).state is State.CLOSED
        assert driver.enqueue(lane="l").state is State.READY

    def test_a_task_that_leaves_the_queue_is_not_promoted(self, driver: Driver) -> None:
        holder, gone, following = (driver.enqueue(lane="l") for _ in range(3))
        driver.store.stop(gone.id)
        assert driver.task(following.id).state is State.QUEUED
        driver.store.stop(holder.id)
        assert driver.task(following.id).state is State.READY

    def test_why_names_who_holds_the_lane_now(self, driver: Driver) -> None:
        first, second, third = (driver.enqueue(lane="l") for _ in range(3))
        driver.store.stop(first.id)
        reason = driver.store.why(third.id)
        assert reason is not None
        assert (reason.code, reason.by) == (ReasonCode.LANE_HELD, second.id)

    def test_a_delayed_task_holds_its_lane_and_a_queued_one_waits_on(
        self, driver: Driver, harness: Harness
    ) -> None:
        first = driver.enqueue(lane="l", delay=MINUTE)
        second = driver.enqueue(lane="l", delay=HOUR)
        assert (first.state, second.state) == (State.READY, State.QUEUED)
        assert driver.claim() == []
        harness.advance(MINUTE)
        driver.commit(driver.take().fence)
        promoted = driver.task(second.id)
        assert (promoted.state, promoted.run_at) == (State.READY, second.run_at)
        assert promoted.reason is not None
        assert promoted.reason.code is ReasonCode.DELAYED
        assert driver.claim() == []
        harness.advance(HOUR)
        assert driver.take().task.id == second.id

    def test_a_task_that_holds_keeps_the_lane_while_it_waits(self, driver: Driver) -> None:
        caller = driver.caller("a", lane="l")
        behind = driver.enqueue(lane="l")
        assert behind.state is State.QUEUED
        driver.store.reply(caller.calls["a"], CallStatus.OK)
        assert driver.task(behind.id).state is State.QUEUED
        driver.commit(driver.take("caller").fence)
        assert driver.task(behind.id).state is State.READY

    def test_a_task_that_does_not_hold_frees_the_lane_while_it_waits(self, driver: Driver) -> None:
        driver.enqueue("caller", lane="l", hold=False)
        behind = driver.enqueue(lane="l")
        fence = driver.take("caller").fence
        caller = driver.commit(fence, Suspend(), calls=(call("a"),))
        assert driver.task(behind.id).state is State.READY
        driver.store.reply(caller.calls["a"], CallStatus.OK)
        queued = driver.task(caller.task.id)
        assert queued.state is State.QUEUED
        assert queued.reason is not None
        assert queued.reason.code is ReasonCode.LANE_HELD
        driver.commit(driver.take().fence)
        again = driver.task(caller.task.id)
        assert again.state is State.READY
        assert again.reason is not None
        assert again.reason.code is ReasonCode.ANSWERED
        assert [reply.key for reply in driver.take("caller").replies] == ["a"]

    def test_a_task_that_freed_its_lane_takes_it_back_when_it_is_free(self, driver: Driver) -> None:
        caller = driver.caller("a", lane="l", hold=False)
        driver.store.reply(caller.calls["a"], CallStatus.OK)
        assert driver.task(caller.task.id).state is State.READY
        assert driver.enqueue(lane="l").state is State.QUEUED

    def test_a_task_that_freed_its_lane_and_is_stopped_leaves_the_lane_alone(
        self, driver: Driver
    ) -> None:
        caller = driver.caller("a", lane="l", hold=False)
        holder, behind = driver.enqueue(lane="l"), driver.enqueue(lane="l")
        driver.store.stop(caller.task.id)
        assert driver.task(holder.id).state is State.READY
        assert driver.task(behind.id).state is State.QUEUED

    def test_a_task_that_is_tried_again_keeps_its_lane(
        self, driver: Driver, harness: Harness
    ) -> None:
        driver.register("v", lease=MINUTE)
        first, behind = driver.enqueue(lane="l"), driver.enqueue(lane="l")
        driver.claim(worker="v")
        harness.advance(HOUR)
        driver.sweep_all()
        assert driver.task(first.id).state is State.READY
        assert driver.task(behind.id).state is State.QUEUED

    def test_a_callee_must_not_want_the_lane_of_a_caller(self, driver: Driver) -> None:
        caller = driver.caller("a", lane="l")
        claim = driver.take("a")
        with pytest.raises(LaneCycle):
            driver.commit(claim.fence, Suspend(), calls=(call("b", lane="l"),))
        assert driver.store.calls_of(claim.task.id) == []
        calls = (call("b", lane="m"), call("c", lane="l", tenant="acme"))
        driver.commit(claim.fence, Suspend(), calls=calls)
        assert driver.task(caller.task.id).state is State.WAITING

    def test_a_task_must_not_call_into_its_own_lane(self, driver: Driver) -> None:
        driver.enqueue(lane="l")
        claim = driver.take()
        with pytest.raises(LaneCycle):
            driver.commit(claim.fence, Continue(), calls=(call("a", lane="l"),))
        assert driver.commit(claim.fence).task.state is State.CLOSED

    def test_a_caller_that_does_not_hold_may_call_into_its_own_lane(self, driver: Driver) -> None:
        driver.enqueue("caller", lane="l", hold=False)
        fence = driver.take("caller").fence
        caller = driver.commit(fence, Suspend(), calls=(call("a", lane="l"), call("b", lane="l")))
        driver.commit(driver.take("a").fence)
        driver.commit(driver.take("b").fence)
        assert driver.task(caller.task.id).state is State.READY

    def test_a_woken_caller_queues_for_its_lane_like_everybody(self, driver: Driver) -> None:
        """The answer comes in the transaction that frees the lane: the more urgent goes first."""
        driver.enqueue("caller", lane="l", hold=False, wake=Wake.ANY)
        fence = driver.take("caller").fence
        caller = driver.commit(fence, Suspend(), calls=(call("a", lane="l"),))
        urgent = driver.enqueue(lane="l", priority=1)
        driver.commit(driver.take("a").fence)
        assert driver.task(urgent.id).state is State.READY
        assert driver.task(caller.task.id).state is State.QUEUED
