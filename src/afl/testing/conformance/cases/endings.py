"""Failures, crashes, stops and time: everything that ends a task against its will, or begins it
again."""

from __future__ import annotations

import pytest

from afl.kernel.errors import BadRequest, Fenced, NotFound
from afl.kernel.model import (
    CallStatus,
    ClaimRequest,
    Close,
    Continue,
    Outcome,
    ReasonCode,
    Retry,
    State,
    Stopped,
    Suspend,
    WorkerId,
    WorkerState,
)
from afl.testing.conformance.cases.base import Cases
from afl.testing.conformance.driver import (
    DAY,
    DONE,
    FAILED,
    HOUR,
    MINUTE,
    NOBODY,
    SLACK,
    Driver,
    call,
)
from afl.testing.conformance.harness import Harness

_TWICE = Retry(max_failures=2, delay=MINUTE, backoff=10, max_delay=HOUR, jitter=False)


class RetryCases(Cases):
    def test_a_failure_is_final_by_default(self, driver: Driver) -> None:
        driver.enqueue()
        task = driver.commit(driver.take().fence, FAILED).task
        assert (task.outcome, task.failures, task.dead) == (Outcome.FAILED, 1, False)
        assert driver.store.dead_letters() == []

    def test_a_failure_is_tried_again_after_a_growing_wait(
        self, driver: Driver, harness: Harness
    ) -> None:
        task = driver.enqueue(retry=_TWICE)
        for failures, wait in ((1, MINUTE), (2, 10 * MINUTE)):
            before = driver.take()
            again = driver.commit(before.fence, FAILED).task
            assert (again.state, again.failures) == (State.READY, failures)
            assert (again.fence, again.error) == (None, {"message": "no"})
            assert again.reason is not None
            assert again.reason.code is ReasonCode.RETRY
            assert again.reason.until == again.run_at
            assert again.run_at - again.reason.since == wait
            harness.advance(wait - SLACK)
            assert driver.claim() == []
            harness.advance(SLACK)
        assert driver.events("closed") == []
        last = driver.commit(driver.take().fence, FAILED).task
        assert (last.outcome, last.failures, last.dead) == (Outcome.FAILED, 3, True)
        assert [letter.id for letter in driver.store.dead_letters()] == [task.id]

    def test_a_permanent_failure_is_not_tried_again(self, driver: Driver) -> None:
        driver.enqueue(retry=_TWICE)
        failure = Close(Outcome.FAILED, permanent=True)
        task = driver.commit(driver.take().fence, failure).task
        assert (task.state, task.dead) == (State.CLOSED, True)

    @pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.FAILED])
    def test_only_failures_are_tried_again(self, driver: Driver, outcome: Outcome) -> None:
        driver.enqueue(retry=_TWICE)
        task = driver.commit(driver.take().fence, Close(outcome)).task
        assert (task.outcome, task.failures, task.dead) == (outcome, 0, False)

    def test_a_caller_hears_of_the_last_failure_only(
        self, driver: Driver, harness: Harness
    ) -> None:
        driver.enqueue("caller")
        fence = driver.take("caller").fence
        retry = Retry(max_failures=1, jitter=True)
        caller = driver.commit(fence, Suspend(), calls=(call("a", retry=retry, timeout=DAY),))
        driver.commit(driver.take("a").fence, FAILED)
        assert driver.call(caller.calls["a"]).status is CallStatus.OPEN
        harness.advance(MINUTE)
        driver.commit(driver.take("a").fence, FAILED)
        assert driver.call(caller.calls["a"]).status is CallStatus.ERROR

    def test_open_calls_outlive_a_failure(self, driver: Driver, harness: Harness) -> None:
        driver.enqueue("caller", retry=_TWICE)
        fence = driver.take("caller").fence
        first = driver.commit(fence, Continue(), calls=(call("a"),))
        driver.commit(fence, FAILED, number=1)
        driver.store.reply(first.calls["a"], CallStatus.OK, "kept")
        assert driver.claim("caller") == []
        harness.advance(MINUTE)
        claim = driver.take("caller")
        assert [reply.reply for reply in claim.replies] == ["kept"]

    def test_a_dead_letter_is_driven_again_once(self, driver: Driver) -> None:
        dead = driver.enqueue(retry=_TWICE, input=[1], timeout=HOUR, lane="l", priority=3)
        driver.commit(driver.take().fence, Close(Outcome.FAILED, permanent=True))
        closed = driver.task(dead.id)
        fresh = driver.store.redrive(dead.id)
        assert fresh.redrives == dead.id
        assert (fresh.state, fresh.failures, fresh.parent_call) == (State.READY, 0, None)
        for name in ("run", "kind", "name", "input", "lane", "priority", "retry", "list", "tenant"):
            assert getattr(fresh, name) == getattr(dead, name)
        assert fresh.deadline == fresh.created_at + HOUR
        assert driver.store.redrive(dead.id) == fresh
        assert driver.store.dead_letters() == []
        assert driver.task(dead.id) == closed

    def test_what_was_not_given_up_cannot_be_driven_again(self, driver: Driver) -> None:
        task = driver.enqueue()
        with pytest.raises(BadRequest):
            driver.store.redrive(task.id)
        with pytest.raises(NotFound):
            driver.store.redrive(NOBODY)

    def test_dead_letters_come_in_pages(self, driver: Driver) -> None:
        for _ in range(3):
            driver.enqueue(retry=_TWICE)
        for claim in driver.claim(n=3):
            driver.commit(claim.fence, Close(Outcome.FAILED, permanent=True))
        one, two, three = driver.store.dead_letters()
        assert driver.store.dead_letters(limit=2) == [one, two]
        assert driver.store.dead_letters(after=one.id) == [two, three]


class CrashCases(Cases):
    @staticmethod
    def crash(driver: Driver, harness: Harness) -> None:
        """A worker takes a task and is never heard of again."""
        driver.register("v", lease=MINUTE)
        assert len(driver.claim(worker="v")) == 1
        harness.advance(MINUTE)

    def test_a_lost_workers_tasks_are_taken_over(self, driver: Driver, harness: Harness) -> None:
        driver.register("v", lease=MINUTE)
        driver.enqueue()
        lost = driver.take(worker="v")
        assert driver.sweep_all() == 0
        harness.advance(MINUTE)
        swept = driver.store.sweep()
        assert (swept.workers_expired, swept.tasks_recovered, swept.total) == (1, 1, 2)
        task = driver.task(lost.task.id)
        assert (task.state, task.crashes) == (State.READY, 1)
        assert task.reason is not None
        assert task.reason.code is ReasonCode.CRASHED
        assert driver.take().fence > lost.fence
        with pytest.raises(Fenced):
            driver.commit(lost.fence)

    def test_a_worker_that_comes_back_learns_what_it_lost(
        self, driver: Driver, harness: Harness
    ) -> None:
        driver.register("v", lease=MINUTE)
        driver.enqueue()
        fence = driver.take(worker="v").fence
        harness.advance(MINUTE)
        driver.sweep_all()
        worker = driver.store.get_worker(WorkerId("v"))
        assert worker is not None
        assert worker.state is WorkerState.ERROR
        assert driver.store.renew(WorkerId("v"), [fence]).lost == (fence,)
        worker = driver.store.get_worker(WorkerId("v"))
        assert worker is not None
        assert worker.state is WorkerState.RUNNING
        assert len(driver.claim(worker="v")) == 1

    def test_a_worker_that_renews_before_the_sweep_keeps_its_tasks(
        self, driver: Driver, harness: Harness
    ) -> None:
        driver.register("v", lease=MINUTE)
        driver.enqueue()
        fence = driver.take(worker="v").fence
        harness.advance(HOUR)
        assert driver.store.renew(WorkerId("v"), [fence]).lost == ()
        assert driver.sweep_all() == 0
        assert driver.commit(fence).task.state is State.CLOSED

    def test_a_worker_that_shut_down_is_not_an_error(
        self, driver: Driver, harness: Harness
    ) -> None:
        driver.register("v", lease=MINUTE)
        driver.enqueue()
        driver.claim(worker="v")
        driver.store.set_worker_state(WorkerId("v"), WorkerState.SHUTDOWN)
        assert driver.store.renew(WorkerId("v")).lost == ()
        harness.advance(MINUTE)
        assert driver.store.sweep().tasks_recovered == 1
        worker = driver.store.get_worker(WorkerId("v"))
        assert worker is not None
        assert worker.state is WorkerState.SHUTDOWN

    def test_too_many_crashes_give_a_task_up(self, driver: Driver, harness: Harness) -> None:
        task = driver.enqueue(max_crashes=2)
        for _ in range(2):
            self.crash(driver, harness)
            assert driver.store.sweep().tasks_recovered == 1
        self.crash(driver, harness)
        swept = driver.store.sweep()
        assert (swept.tasks_recovered, swept.tasks_given_up) == (0, 1)
        dead = driver.task(task.id)
        assert (dead.outcome, dead.crashes, dead.dead) == (Outcome.FAILED, 3, True)
        assert dead.error is not None
        assert [letter.id for letter in driver.store.dead_letters()] == [task.id]

    def test_a_task_that_must_not_run_twice_is_given_up_at_once(
        self, driver: Driver, harness: Harness
    ) -> None:
        task = driver.enqueue(max_crashes=0)
        self.crash(driver, harness)
        assert driver.store.sweep().tasks_given_up == 1
        assert driver.task(task.id).dead

    def test_progress_clears_the_count_of_crashes(self, driver: Driver, harness: Harness) -> None:
        driver.enqueue(max_crashes=1)
        self.crash(driver, harness)
        driver.sweep_all()
        claim = driver.take()
        assert claim.task.crashes == 1
        assert driver.commit(claim.fence, Continue()).task.crashes == 0
        (loss,) = driver.store.losses_of([claim.task.id])
        assert (loss.task, loss.worker) == (claim.task.id, "v")
        assert loss.fence < claim.fence

    def test_sweeping_by_small_steps_gets_everything(
        self, driver: Driver, harness: Harness
    ) -> None:
        driver.register("v", lease=MINUTE)
        for _ in range(3):
            driver.enqueue()
        driver.claim(worker="v", n=3)
        harness.advance(MINUTE)
        assert driver.store.sweep(limit=1).tasks_recovered == 1
        assert driver.store.sweep(limit=1).tasks_recovered == 1
        assert driver.sweep_all() == 1
        assert driver.sweep_all() == 0


class StopCases(Cases):
    def test_what_does_not_run_is_closed_at_once(self, driver: Driver) -> None:
        ready, queued = driver.enqueue(lane="l"), driver.enqueue(lane="l")
        waiting = driver.caller("a").task
        for task in (queued, ready, waiting):
            assert driver.store.stop(task.id, error={"by": "me"}) is Stopped.CLOSED
            closed = driver.task(task.id)
            assert (closed.outcome, closed.error) == (Outcome.CANCELED, {"by": "me"})
            assert driver.store.stop(task.id) is Stopped.ALREADY_CLOSED
        assert len(driver.events("closed")) == 3
        assert driver.claim() == []

    def test_what_runs_is_asked(self, driver: Driver) -> None:
        task = driver.enqueue()
        claim = driver.take()
        assert driver.store.stop(task.id) is Stopped.REQUESTED
        assert driver.store.stop(task.id) is Stopped.REQUESTED
        asked = driver.task(task.id)
        assert (asked.state, asked.stop_requested) == (State.RUNNING, True)
        reason = driver.store.why(task.id)
        assert reason is not None
        assert reason.code is ReasonCode.STOPPING
        closed = driver.commit(claim.fence, Close(Outcome.CANCELED)).task
        assert closed.outcome is Outcome.CANCELED

    def test_a_task_that_was_asked_may_still_succeed(self, driver: Driver) -> None:
        task = driver.enqueue()
        claim = driver.take()
        driver.store.stop(task.id, error="stop")
        closed = driver.commit(claim.fence, DONE).task
        assert (closed.outcome, closed.error) == (Outcome.SUCCESS, None)

    def test_a_task_that_was_asked_and_suspends_is_canceled(self, driver: Driver) -> None:
        driver.enqueue("caller")
        claim = driver.take("caller")
        driver.store.stop(claim.task.id, error="stop")
        calls = (call("a"),)
        eager = ClaimRequest(WorkerId("w"), ("a",))
        committed = driver.commit(claim.fence, Suspend(), calls=calls, eager=eager)
        assert (committed.task.outcome, committed.task.error) == (Outcome.CANCELED, "stop")
        assert committed.eager == ()
        driver.sweep_all()
        assert {task.outcome for task in driver.store.find_tasks()} == {Outcome.CANCELED}

    def test_a_task_that_was_asked_and_fails_is_not_tried_again(self, driver: Driver) -> None:
        driver.enqueue(retry=_TWICE)
        claim = driver.take()
        driver.store.stop(claim.task.id)
        closed = driver.commit(claim.fence, FAILED).task
        assert (closed.outcome, closed.dead) == (Outcome.FAILED, False)

    def test_a_task_that_was_asked_and_crashes_is_canceled(
        self, driver: Driver, harness: Harness
    ) -> None:
        driver.register("v", lease=MINUTE)
        task = driver.enqueue()
        driver.claim(worker="v")
        driver.store.stop(task.id)
        harness.advance(MINUTE)
        driver.sweep_all()
        closed = driver.task(task.id)
        assert (closed.outcome, closed.dead) == (Outcome.CANCELED, False)

    def test_a_stopped_callee_answers_its_caller(self, driver: Driver) -> None:
        caller = driver.caller("a")
        driver.store.stop(driver.callee(caller.calls["a"]).id, error="why")
        answered = driver.call(caller.calls["a"])
        assert (answered.status, answered.reply) == (CallStatus.CANCELED, "why")
        assert driver.task(caller.task.id).state is State.READY

    def test_what_a_closed_task_had_called_is_stopped_by_the_sweep(self, driver: Driver) -> None:
        root = driver.caller("a", "b", "c")
        middle = driver.commit(driver.take("a").fence, Suspend(), calls=(call("leaf"),))
        running = driver.take("b")
        driver.commit(driver.take("c").fence)
        driver.store.stop(root.task.id)
        driver.sweep_all()
        assert driver.task(middle.task.id).outcome is Outcome.CANCELED
        assert driver.callee(middle.calls["leaf"]).outcome is Outcome.CANCELED
        assert driver.callee(root.calls["c"]).outcome is Outcome.SUCCESS
        asked = driver.task(running.task.id)
        assert (asked.state, asked.stop_requested) == (State.RUNNING, True)
        assert driver.sweep_all() == 0

    def test_nothing_can_be_stopped_that_is_not_there(self, driver: Driver) -> None:
        with pytest.raises(NotFound):
            driver.store.stop(NOBODY)


class DeadlineCases(Cases):
    def test_a_task_is_closed_at_its_deadline_wherever_it_is(
        self, driver: Driver, harness: Harness
    ) -> None:
        ready = driver.enqueue("other", lane="l", timeout=MINUTE)
        queued = driver.enqueue("other", lane="l", timeout=MINUTE)
        running = driver.enqueue(timeout=MINUTE)
        fence = driver.take().fence
        waiting = driver.caller("a", timeout=MINUTE).task
        unlimited = driver.enqueue("other")
        harness.advance(MINUTE - SLACK)
        assert driver.sweep_all() == 0
        harness.advance(SLACK)
        driver.sweep_all()
        for task in (ready, queued, running, waiting):
            closed = driver.task(task.id)
            assert (closed.outcome, closed.dead) == (Outcome.TIMEOUT, False)
            assert closed.error is not None
        assert driver.task(unlimited.id).state is State.READY
        with pytest.raises(Fenced):
            driver.commit(fence)

    def test_a_call_that_is_not_answered_in_time_is_answered_as_timeout(
        self, driver: Driver, harness: Harness
    ) -> None:
        driver.enqueue("caller")
        fence = driver.take("caller").fence
        calls = (call("a", timeout=MINUTE), call("b", timeout=MINUTE), call("c", timeout=DAY))
        caller = driver.commit(fence, Suspend(), calls=calls)
        running = driver.take("b")
        harness.advance(HOUR)
        assert driver.store.sweep().calls_timed_out == 2
        for key in "ab":
            answered = driver.call(caller.calls[key])
            assert answered.status is CallStatus.TIMEOUT
            assert answered.reply is not None
        assert driver.callee(caller.calls["a"]).outcome is Outcome.CANCELED
        assert driver.callee(caller.calls["b"]).outcome is Outcome.TIMEOUT
        assert driver.call(caller.calls["c"]).status is CallStatus.OPEN
        assert driver.task(caller.task.id).state is State.WAITING
        with pytest.raises(Fenced):
            driver.commit(running.fence)

    def test_the_last_timeout_wakes_the_caller(self, driver: Driver, harness: Harness) -> None:
        caller = driver.caller("a", "b")
        driver.commit(driver.take("a").fence, Close(Outcome.SUCCESS, 1))
        harness.advance(DAY)
        driver.register("w", "work", "caller")
        driver.sweep_all()
        claim = driver.take("caller")
        assert claim.task.id == caller.task.id
        assert [reply.status for reply in claim.replies] == [CallStatus.OK, CallStatus.TIMEOUT]
