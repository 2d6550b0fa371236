"""Calls: opening, answering, waking, and how deep they go."""

from __future__ import annotations

import pytest

from afl.kernel.errors import BadRequest, NotFound, TooDeep
from afl.kernel.model import (
    MAX_DEPTH,
    CallStatus,
    Close,
    Continue,
    Json,
    Outcome,
    ReasonCode,
    State,
    Suspend,
    Wake,
)
from afl.testing.conformance.cases.base import Cases
from afl.testing.conformance.driver import HOUR, MINUTE, NO_CALL, Driver, body_of, call


class CallCases(Cases):
    def test_a_commit_opens_calls_with_their_callees(self, driver: Driver) -> None:
        caller = driver.caller("a", "b")
        assert list(caller.calls) == ["a", "b"]
        assert caller.task.state is State.WAITING
        calls = driver.store.calls_of(caller.task.id)
        assert [each.id for each in calls] == list(caller.calls.values())
        for key, opened in zip("ab", calls, strict=True):
            assert (opened.key, opened.caller, opened.run) == (key, caller.task.id, caller.task.run)
            assert (opened.status, opened.reply, opened.replied_at) == (CallStatus.OPEN, None, None)
            callee = driver.callee(opened.id)
            assert (callee.name, callee.parent_call) == (key, opened.id)
            assert (callee.run, callee.depth) == (caller.task.run, 1)

    def test_callees_are_claimed_in_the_order_of_their_calls(self, driver: Driver) -> None:
        driver.enqueue("caller")
        calls = tuple(call(key, "work") for key in ("z", "a", "m"))
        committed = driver.commit(driver.take("caller").fence, Suspend(), calls=calls)
        keys = {call_id: key for key, call_id in committed.calls.items()}
        order = [claim.task.parent_call for claim in driver.claim(n=9)]
        assert [keys[each] for each in order if each is not None] == ["z", "a", "m"]

    def test_waiting_names_the_call_that_ends_first(self, driver: Driver) -> None:
        driver.enqueue("caller")
        calls = (call("slow", timeout=HOUR), call("fast", timeout=MINUTE))
        caller = driver.commit(driver.take("caller").fence, Suspend(), calls=calls)
        fast, slow = driver.call(caller.calls["fast"]), driver.call(caller.calls["slow"])
        assert caller.task.reason is not None
        assert caller.task.reason.code is ReasonCode.CALLS_OPEN
        assert (caller.task.reason.by, caller.task.reason.until) == (fast.id, fast.deadline)
        driver.store.reply(fast.id, CallStatus.OK)
        reason = driver.store.why(caller.task.id)
        assert reason is not None
        assert (reason.by, reason.until) == (slow.id, slow.deadline)

    def test_a_call_key_is_one_call(self, driver: Driver) -> None:
        driver.enqueue("caller")
        fence = driver.take("caller").fence
        first = driver.commit(fence, Continue(), calls=(call("a"),))
        again = driver.commit(fence, Suspend(), number=1, calls=(call("a", "other"), call("b")))
        assert again.calls["a"] == first.calls["a"]
        assert [task.name for task in driver.store.find_tasks()] == ["caller", "a", "b"]

    @pytest.mark.parametrize(
        ("outcome", "status", "body"),
        [
            (Outcome.SUCCESS, CallStatus.OK, "r"),
            (Outcome.PARTIAL, CallStatus.OK, "r"),
            (Outcome.FAILED, CallStatus.ERROR, "e"),
            (Outcome.TIMEOUT, CallStatus.TIMEOUT, "e"),
            (Outcome.CANCELED, CallStatus.CANCELED, "e"),
        ],
    )
    def test_a_closing_callee_answers(
        self, driver: Driver, outcome: Outcome, status: CallStatus, body: str
    ) -> None:
        caller = driver.caller("a")
        driver.commit(driver.take("a").fence, Close(outcome, "r", "e"))
        answered = driver.call(caller.calls["a"])
        assert (answered.status, answered.reply) == (status, body)
        assert answered.replied_at is not None
        assert driver.task(caller.task.id).state is State.READY

    def test_wake_all_waits_for_every_answer(self, driver: Driver) -> None:
        caller = driver.caller("a", "b")
        driver.commit(driver.take("a").fence)
        assert driver.task(caller.task.id).state is State.WAITING
        driver.commit(driver.take("b").fence)
        task = driver.task(caller.task.id)
        assert task.state is State.READY
        assert task.reason is not None
        assert task.reason.code is ReasonCode.ANSWERED
        replies = driver.take("caller").replies
        assert [reply.key for reply in replies] == ["a", "b"]

    def test_wake_any_goes_on_at_every_answer(self, driver: Driver) -> None:
        caller = driver.caller("a", "b", wake=Wake.ANY)
        driver.commit(driver.take("b").fence)
        claim = driver.take("caller")
        assert [reply.key for reply in claim.replies] == ["b"]
        driver.commit(claim.fence, Suspend(), applied=(claim.replies[0].id,))
        assert driver.task(caller.task.id).state is State.WAITING
        driver.commit(driver.take("a").fence)
        assert [reply.key for reply in driver.take("caller").replies] == ["a"]

    def test_answers_that_were_not_taken_come_again_oldest_first(self, driver: Driver) -> None:
        caller = driver.caller("a", "b", "c", wake=Wake.ANY)
        for key in ("c", "a"):
            driver.store.reply(caller.calls[key], CallStatus.OK, key)
        claim = driver.take("caller")
        assert [reply.reply for reply in claim.replies] == ["c", "a"]
        after = driver.commit(claim.fence, Suspend(), applied=(caller.calls["c"],))
        assert after.task.state is State.READY
        assert [reply.reply for reply in driver.take("caller").replies] == ["a"]
        assert driver.call(caller.calls["c"]).applied

    def test_an_answer_to_a_running_caller_is_there_when_it_suspends(self, driver: Driver) -> None:
        driver.enqueue("caller")
        fence = driver.take("caller").fence
        opened = driver.commit(fence, Continue(), calls=(call("a"),))
        assert driver.store.reply(opened.calls["a"], CallStatus.OK)
        assert driver.task(opened.task.id).fence == fence
        assert driver.commit(fence, Suspend(), number=1).task.state is State.READY

    def test_the_first_answer_wins_and_others_are_kept_as_late(self, driver: Driver) -> None:
        caller = driver.caller("a")
        call_id = caller.calls["a"]
        assert driver.store.reply(call_id, CallStatus.OK, {"n": 1})
        before = driver.call(call_id)
        assert not driver.store.reply(call_id, CallStatus.OK, {"n": 2})
        assert not driver.store.reply(call_id, CallStatus.ERROR, {"n": 1})
        assert driver.call(call_id) == before
        late = [body_of(entry) for entry in driver.events("late", caller.task.id)]
        assert [(body["call"], body["status"], body["body"]) for body in late] == [
            (call_id, "ok", {"n": 2}),
            (call_id, "error", {"n": 1}),
        ]

    def test_answers_are_copied_both_ways(self, driver: Driver) -> None:
        caller = driver.caller("a")
        body: dict[str, Json] = {"n": 1}
        driver.store.reply(caller.calls["a"], CallStatus.OK, body)
        body["n"] = 2
        claim = driver.take("caller")
        for seen in (claim.replies[0].reply, driver.call(caller.calls["a"]).reply):
            assert seen == {"n": 1}
            assert isinstance(seen, dict)
            seen.clear()
        assert driver.call(caller.calls["a"]).reply == {"n": 1}

    def test_repeating_an_answer_is_the_same_answer(self, driver: Driver) -> None:
        caller = driver.caller("a")
        for _ in range(3):
            assert driver.store.reply(caller.calls["a"], CallStatus.OK, [True, {"n": 1}])
        assert driver.events("late") == []
        assert not driver.store.reply(caller.calls["a"], CallStatus.OK, [1, {"n": 1}])

    def test_a_callee_that_closes_after_another_answer_is_late(self, driver: Driver) -> None:
        caller = driver.caller("a")
        driver.store.reply(caller.calls["a"], CallStatus.OK, "by hand")
        assert driver.commit(driver.take("a").fence).task.outcome is Outcome.SUCCESS
        assert driver.call(caller.calls["a"]).reply == "by hand"
        assert len(driver.events("late", caller.task.id)) == 1

    def test_an_answer_to_a_closed_caller_wakes_nobody(self, driver: Driver) -> None:
        caller = driver.caller("a")
        driver.store.stop(caller.task.id)
        closed = driver.task(caller.task.id)
        assert driver.store.reply(caller.calls["a"], CallStatus.OK)
        assert driver.task(caller.task.id) == closed

    def test_what_is_no_answer_is_refused(self, driver: Driver) -> None:
        caller = driver.caller("a")
        with pytest.raises(BadRequest):
            driver.store.reply(caller.calls["a"], CallStatus.OPEN)
        with pytest.raises(BadRequest):
            driver.store.reply(caller.calls["a"], CallStatus.OK, float("nan"))
        with pytest.raises(NotFound):
            driver.store.reply(NO_CALL, CallStatus.OK)
        assert driver.call(caller.calls["a"]).status is CallStatus.OPEN
        assert driver.store.get_call(NO_CALL) is None

    def test_only_own_answers_that_are_there_can_be_applied(self, driver: Driver) -> None:
        other = driver.caller("a", name="other")
        driver.store.reply(other.calls["a"], CallStatus.OK)
        driver.enqueue("caller")
        fence = driver.take("caller").fence
        opened = driver.commit(fence, Continue(), calls=(call("b"),))
        for applied in (other.calls["a"], opened.calls["b"], NO_CALL):
            with pytest.raises(BadRequest):
                driver.commit(fence, Continue(), number=1, applied=(applied,))
        assert not driver.call(other.calls["a"]).applied
        driver.store.reply(opened.calls["b"], CallStatus.OK)
        driver.commit(fence, Continue(), number=1, applied=(opened.calls["b"],))
        driver.commit(fence, Continue(), number=2, applied=(opened.calls["b"],))
        assert driver.call(opened.calls["b"]).applied

    def test_a_child_never_has_longer_than_its_caller(self, driver: Driver) -> None:
        caller = driver.caller("a", timeout=MINUTE)
        assert caller.task.deadline is not None
        opened = driver.call(caller.calls["a"])
        assert opened.deadline == caller.task.deadline
        assert driver.callee(opened.id).deadline == caller.task.deadline

    def test_a_callee_may_have_less_than_its_call(self, driver: Driver) -> None:
        driver.enqueue("caller")
        fence = driver.take("caller").fence
        calls = (call("a", timeout=HOUR), call("b", timeout=HOUR, task_timeout=MINUTE))
        committed = driver.commit(fence, Suspend(), calls=calls)
        a, b = (driver.call(committed.calls[key]) for key in "ab")
        assert a.deadline == b.deadline
        assert driver.callee(a.id).deadline == a.deadline
        assert driver.callee(b.id).deadline == b.deadline - HOUR + MINUTE

    def test_calls_nest_only_so_deep(self, driver: Driver) -> None:
        driver.enqueue()
        for _ in range(MAX_DEPTH - 1):
            driver.commit(driver.take().fence, Suspend(), calls=(call("next", "work"),))
        claim = driver.take()
        assert claim.task.depth == MAX_DEPTH - 1
        with pytest.raises(TooDeep):
            driver.commit(claim.fence, Suspend(), calls=(call("next", "work"),))
        assert driver.store.calls_of(claim.task.id) == []
        driver.commit(claim.fence)
