"""Steps of work: fences, numbers, cards, and the ways to go on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from afl.kernel.errors import BadRequest, Fenced, NotFound
from afl.kernel.model import (
    CardSpec,
    ClaimRequest,
    Close,
    Commit,
    Continue,
    Fence,
    Json,
    Outcome,
    State,
    Suspend,
    WorkerId,
)
from afl.kernel.port import Transaction
from afl.kernel.rules import card_hash
from afl.testing.conformance.cases.base import Cases
from afl.testing.conformance.driver import DONE, MINUTE, Driver, call
from afl.testing.conformance.harness import Harness


class CommitCases(Cases):
    @pytest.mark.parametrize("outcome", Outcome)
    def test_closing_ends_a_task_with_one_event(self, driver: Driver, outcome: Outcome) -> None:
        driver.enqueue()
        claim = driver.take()
        task = driver.commit(claim.fence, Close(outcome, {"r": 1}, {"e": 2})).task
        assert (task.state, task.outcome) == (State.CLOSED, outcome)
        assert (task.result, task.error) == ({"r": 1}, {"e": 2})
        assert (task.fence, task.worker, task.reason) == (None, None, None)
        assert task.closed_at is not None
        assert driver.task(task.id) == task
        (event,) = driver.events("closed")
        assert (event.task, event.run) == (task.id, task.run)
        assert isinstance(event.body, dict)
        assert event.body["outcome"] == outcome.value

    def test_continuing_keeps_the_fence(self, driver: Driver) -> None:
        driver.enqueue()
        claim = driver.take()
        task = driver.commit(claim.fence, Continue()).task
        assert (task.state, task.fence, task.commits) == (State.RUNNING, claim.fence, 1)
        assert driver.commit(claim.fence, number=1).task.state is State.CLOSED

    def test_suspending_without_calls_is_ready_at_once(self, driver: Driver) -> None:
        driver.enqueue()
        first = driver.take()
        assert driver.commit(first.fence, Suspend()).task.state is State.READY
        again = driver.take()
        assert again.task.id == first.task.id
        assert again.fence > first.fence

    def test_a_fence_that_nobody_has_is_refused(self, driver: Driver) -> None:
        with pytest.raises(Fenced):
            driver.commit(Fence(10**9))

    def test_a_lost_fence_is_refused_and_writes_nothing(
        self, driver: Driver, harness: Harness
    ) -> None:
        driver.enqueue()
        old = driver.take()
        driver.commit(old.fence, Suspend())
        new = driver.take()
        before = driver.task(new.task.id)
        stale = Commit(old.fence, DONE, number=1, cards=(CardSpec("note", 1),))
        with pytest.raises(Fenced):
            driver.store.commit([stale], writes=harness.mark("stale"))
        assert driver.task(new.task.id) == before
        assert driver.store.read_box(new.task.id) == []
        assert harness.marks() == []

    def test_a_forced_stop_takes_the_fence_away(self, driver: Driver) -> None:
        task = driver.enqueue()
        claim = driver.take()
        driver.store.stop(task.id, force=True)
        with pytest.raises(Fenced):
            driver.commit(claim.fence)

    def test_a_repeated_commit_changes_nothing(self, driver: Driver, harness: Harness) -> None:
        driver.enqueue("caller")
        claim = driver.take("caller")
        commit = Commit(
            claim.fence, Suspend(), cards=(CardSpec("note", 1),), calls=(call("a"), call("b"))
        )
        (first,) = driver.store.commit([commit], writes=harness.mark("once"))
        (again,) = driver.store.commit([commit], writes=harness.mark("once"))
        assert again == first
        assert harness.marks() == ["once"]
        assert len(driver.store.find_tasks()) == 3
        assert len(driver.store.read_box(claim.task.id)) == 1

    def test_a_repeated_commit_answers_with_the_present_state(self, driver: Driver) -> None:
        driver.enqueue()
        claim = driver.take()
        driver.commit(claim.fence, Continue())
        driver.commit(claim.fence, Close(Outcome.SUCCESS, "r"), number=1)
        task = driver.commit(claim.fence, Continue()).task
        assert (task.state, task.result) == (State.CLOSED, "r")
        assert len(driver.events("closed")) == 1

    def test_numbers_have_no_gaps(self, driver: Driver) -> None:
        driver.enqueue()
        claim = driver.take()
        with pytest.raises(BadRequest):
            driver.commit(claim.fence, Continue(), number=1)
        driver.commit(claim.fence, Continue())
        with pytest.raises(BadRequest):
            driver.commit(claim.fence, Continue(), number=2)

    def test_numbers_start_anew_with_each_fence(self, driver: Driver) -> None:
        driver.enqueue()
        driver.commit(driver.take().fence, Suspend())
        task = driver.commit(driver.take().fence, Continue()).task
        assert task.commits == 1

    def test_cards_are_appended_in_order_to_the_tasks_own_box(self, driver: Driver) -> None:
        driver.enqueue()
        fence = driver.take().fence
        notes = tuple(CardSpec("note", {"n": n}) for n in (1, 2, 1))
        (committed,) = driver.store.commit([Commit(fence, Continue(), cards=notes)])
        assert committed.task.seq == 3
        last = CardSpec("end", None)
        (committed,) = driver.store.commit([Commit(fence, DONE, number=1, cards=(last,))])
        assert committed.task.seq == 4
        cards = driver.store.read_box(committed.task.id)
        assert [(c.kind, c.content) for c in cards] == [
            ("note", {"n": 1}), ("note", {"n": 2}), ("note", {"n": 1}), ("end", None),
        ]  # fmt: skip
        assert cards[0] == cards[2]
        assert driver.store.read_box(committed.task.id, 3) == cards[3:]

    def test_several_commits_are_one_transaction(self, driver: Driver, harness: Harness) -> None:
        driver.enqueue()
        driver.enqueue()
        one, two = (claim.fence for claim in driver.claim(n=2))
        with pytest.raises(Fenced):
            driver.store.commit(
                [Commit(one, DONE), Commit(Fence(10**9), DONE)], writes=harness.mark("x")
            )
        assert driver.events("closed") == []
        assert harness.marks() == []
        answers = driver.store.commit(
            [Commit(one, Continue()), Commit(two, DONE), Commit(one, DONE, number=1)],
            writes=harness.mark("y"),
        )
        assert [answer.task.outcome for answer in answers][1:] == [Outcome.SUCCESS] * 2
        assert harness.marks() == ["y"]

    def test_writes_that_raise_leave_nothing(self, driver: Driver, harness: Harness) -> None:
        driver.enqueue("caller", lane="l")
        queued = driver.enqueue(lane="l")
        claim = driver.take("caller")
        before = driver.task(claim.task.id)

        def fail(transaction: Transaction) -> None:
            harness.mark("half")(transaction)
            raise ZeroDivisionError

        for then in (DONE, Suspend(), Continue()):
            calls = () if then is DONE else (call("a"),)
            commit = Commit(claim.fence, then, cards=(CardSpec("note", 1),), calls=calls)
            with pytest.raises(ZeroDivisionError):
                driver.store.commit([commit], writes=fail)
            assert driver.task(claim.task.id) == before
            assert driver.task(queued.id) == queued
            assert driver.store.calls_of(claim.task.id) == []
            assert driver.store.read_box(claim.task.id) == []
        with pytest.raises(NotFound):
            driver.store.get_cards([card_hash("note", 1)])
        assert driver.events("closed") == []
        assert harness.marks() == []
        assert len(driver.store.find_tasks()) == 2
        assert driver.commit(claim.fence).task.state is State.CLOSED

    def test_values_are_copied_both_ways(self, driver: Driver) -> None:
        given = {"list": [1]}
        task = driver.enqueue(input=given)
        given["list"].append(2)
        claim = driver.take()
        assert claim.task.input == {"list": [1]}
        assert isinstance(claim.task.input, dict)
        claim.task.input["list"] = "changed"
        result: list[Json] = [1]
        driver.commit(claim.fence, Close(Outcome.SUCCESS, result))
        result.append(2)
        kept = driver.task(task.id)
        assert (kept.input, kept.result) == ({"list": [1]}, [1])

    @pytest.mark.parametrize(
        "change",
        [
            {"number": -1},
            {"then": Close(Outcome.SUCCESS, float("inf"))},
            {"cards": (CardSpec("", 1),)},
            {"cards": (CardSpec("note", "nul\0"),)},
            {"calls": (call("a"), call("a"))},
            {"calls": (call("a", idem="once"),)},
            {"calls": (call("", "work"),)},
            {"calls": (call("a", run="another"),)},
            {"calls": (call("a"),), "then": DONE},
        ],
        ids=str,
    )
    def test_a_commit_that_contradicts_itself_is_refused(
        self, driver: Driver, change: dict[str, object]
    ) -> None:
        driver.enqueue()
        claim = driver.take()
        commit = replace(Commit(claim.fence, Continue()), **change)  # type: ignore[arg-type]
        with pytest.raises(BadRequest):
            driver.store.commit([commit])
        assert driver.task(claim.task.id) == claim.task


class EagerCases(Cases):
    _EAGER = ClaimRequest(WorkerId("w"), ("a", "b"), n=2, token="e")

    def test_fitting_callees_are_born_running(self, driver: Driver) -> None:
        driver.enqueue("caller")
        calls = (call("1", "x.a"), call("2", "c"), call("3", "b", priority=1), call("4", "a"))
        fence = driver.take("caller").fence
        committed = driver.commit(fence, Suspend(), calls=calls, eager=self._EAGER)
        assert [claim.task.name for claim in committed.eager] == ["b", "x.a"]
        for claim in committed.eager:
            assert claim.task.state is State.RUNNING
            assert claim.task.worker == "w"
            assert driver.task(claim.task.id) == claim.task
        assert driver.callee(committed.calls["4"]).state is State.READY
        assert driver.commit(committed.eager[0].fence).task.state is State.CLOSED

    def test_what_cannot_start_is_not_eager(self, driver: Driver) -> None:
        driver.enqueue("holder", lane="l")
        driver.enqueue("caller")
        calls = (
            call("1", "a", lane="l"),
            call("2", "a", list="slow"),
            call("3", "a", delay=MINUTE),
        )
        fence = driver.take("caller").fence
        committed = driver.commit(fence, Suspend(), calls=calls, eager=self._EAGER)
        assert committed.eager == ()
        assert driver.claim("a") == []

    def test_a_worker_that_is_not_live_gets_nothing(self, driver: Driver) -> None:
        driver.enqueue("caller")
        eager = replace(self._EAGER, worker=WorkerId("nobody"))
        fence = driver.take("caller").fence
        committed = driver.commit(fence, Suspend(), calls=(call("a"),), eager=eager)
        assert committed.eager == ()
        assert driver.take("a").task.parent_call == committed.calls["a"]

    def test_a_repeated_commit_hands_out_the_same_claims(self, driver: Driver) -> None:
        driver.enqueue("caller")
        fence = driver.take("caller").fence
        calls = (call("a"), call("b"), call("c", "a"))
        first = driver.commit(fence, Suspend(), calls=calls, eager=self._EAGER)
        again = driver.commit(fence, Suspend(), calls=calls, eager=self._EAGER)
        assert again == first
        assert len(first.eager) == 2
