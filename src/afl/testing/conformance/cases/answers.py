"""Answers are kept once, wherever the store keeps them, and read everywhere as they were given."""

from __future__ import annotations

import json

import pytest

from afl.kernel.model import (
    Call,
    CallId,
    CallStatus,
    Card,
    CardHash,
    CardSpec,
    Close,
    Commit,
    Committed,
    Json,
    Outcome,
    Suspend,
    Task,
)
from afl.kernel.port import Transaction
from afl.kernel.rules import card_hash
from afl.testing.conformance.cases.base import Cases
from afl.testing.conformance.driver import FAILED, HOUR, MINUTE, NO_CALL, Driver, body_of
from afl.testing.conformance.harness import Harness

ANSWERS: tuple[Json, ...] = (
    {"z": [1, 2.0, None, True], "a": {"ü": "“x” \\ \n"}},
    "a text, not JSON",
    '{"a": 1}',
    "",
    [],
    0,
    False,
)
each_answer = pytest.mark.parametrize("answer", ANSWERS, ids=range(len(ANSWERS)))


def as_text(answer: Json) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, sort_keys=True)


def card_of(text: Json) -> CardSpec:
    return CardSpec("tool.result", {"key": "a", "content": text})


def hash_of(card: CardSpec) -> CardHash:
    return card_hash(card.kind, card.content)


class Answered:
    """A caller whose call `a` was answered, and who has taken that in with a card about it."""

    def __init__(self, driver: Driver, answer: Json) -> None:
        self.driver = driver
        waits = driver.caller("a")
        self.caller, self.call_id = waits.task.id, waits.calls["a"]
        callee = driver.take("a")
        self.callee = callee.task.id
        self.closing = Commit(callee.fence, Close(Outcome.SUCCESS, result=answer))
        (self.closed,) = driver.store.commit([self.closing])
        self.claim = driver.take("caller")

    def take_in(self, *cards: CardSpec, keep: CardHash, fails: bool = False) -> Committed:
        store = self.driver.store

        def writes(transaction: Transaction) -> None:
            store.keep_answer(transaction, self.call_id, keep)
            if fails:
                raise RuntimeError("it is undone")

        commit = Commit(self.claim.fence, Suspend(), cards=tuple(cards), applied=(self.call_id,))
        (committed,) = store.commit([commit], writes=writes)
        return committed

    def seen(self) -> tuple[list[Call | None], list[Task]]:
        """The call and the tasks, by every way that leads to them."""
        store = self.driver.store
        calls = [
            store.get_call(self.call_id),
            store.find_call(self.caller, "a"),
            *store.calls_of(self.caller),
        ]
        tasks = [
            self.driver.task(self.callee),
            *store.find_tasks(run=self.closed.task.run, after=self.caller),
            *store.find_tasks(outcome=Outcome.SUCCESS),
            *(each.task for each in store.commit([self.closing])),
        ]
        return calls, tasks

    def check(self, answer: Json) -> None:
        """Everybody reads this answer, also its type."""
        calls, tasks = self.seen()
        assert [len(calls), len(tasks)] == [3, 4]
        assert {task.id for task in tasks} == {self.callee}
        for call in calls:
            assert call is not None
            assert call.status is CallStatus.OK
            assert (call.reply, type(call.reply)) == (answer, type(answer))
        for task in tasks:
            assert (task.result, type(task.result)) == (answer, type(answer))


class AnswerCases(Cases):
    @each_answer
    def test_an_answer_is_read_everywhere_as_it_was_given(
        self, driver: Driver, answer: Json
    ) -> None:
        world = Answered(driver, answer)
        assert world.closed.task.result == answer
        assert [reply.reply for reply in world.claim.replies] == [answer]
        world.check(answer)

    @each_answer
    def test_a_card_that_stands_for_it_changes_nothing(self, driver: Driver, answer: Json) -> None:
        world = Answered(driver, answer)
        card = card_of(as_text(answer))
        world.take_in(card, keep=hash_of(card))
        world.check(answer)
        # who answers the same again is told that the call has this answer
        assert driver.store.reply(world.call_id, CallStatus.OK, answer)
        assert not driver.store.reply(world.call_id, CallStatus.OK, {"other": 1})
        (late,) = driver.events("late")
        assert body_of(late)["body"] == {"other": 1}
        world.check(answer)

    @pytest.mark.parametrize("text", ["other", '{"a":', '{"a": 2}', {"a": 1}, None, "[]"])
    def test_a_card_that_says_something_else_is_not_taken(self, driver: Driver, text: Json) -> None:
        answer: Json = {"a": [1, "x"]}
        world = Answered(driver, answer)
        card = card_of(text)
        world.take_in(card, keep=hash_of(card))
        world.check(answer)

    def test_a_card_that_is_not_there_and_a_call_that_is_not_are_nothing(
        self, driver: Driver
    ) -> None:
        world = Answered(driver, "x")
        world.take_in(keep=CardHash("sha256:0"))
        world.check("x")
        store, card = driver.store, card_of("x")
        for call_id in (NO_CALL, CallId("no id")):
            store.commit(
                (),
                writes=lambda transaction, call_id=call_id: store.keep_answer(  # type: ignore[misc]
                    transaction, call_id, hash_of(card)
                ),
            )

    def test_what_is_undone_leaves_the_answer_where_it_was(self, driver: Driver) -> None:
        world = Answered(driver, "x" * 300)
        card = card_of("x" * 300)
        with pytest.raises(RuntimeError):
            world.take_in(card, keep=hash_of(card), fails=True)
        world.check("x" * 300)
        assert [reply.reply for reply in world.claim.replies] == ["x" * 300]
        world.take_in(card, keep=hash_of(card))
        world.check("x" * 300)

    def test_what_was_not_taken_in_still_comes_with_the_claim(self, driver: Driver) -> None:
        world = Answered(driver, "x")
        card = card_of("x")
        store = driver.store
        store.put_cards([Card(hash_of(card), card.kind, card.content)])
        store.commit(
            (),
            writes=lambda transaction: store.keep_answer(transaction, world.call_id, hash_of(card)),
        )
        driver.commit(world.claim.fence, Suspend())
        (reply,) = driver.take("caller").replies
        assert reply.reply == "x"
        world.check("x")

    def test_failures_and_parts_are_read_as_they_were_given(self, driver: Driver) -> None:
        waits = driver.caller("a", "b", "c")
        error: Json = {"message": "no"}
        ends = {
            "a": FAILED,
            "b": Close(Outcome.PARTIAL, result=[1], error=error),
            "c": Close(Outcome.FAILED, result=[2], error=error),
        }
        for name, close in ends.items():
            done = driver.commit(driver.take(name).fence, close)
            assert (done.task.result, done.task.error) == (close.result, close.error)
            assert driver.task(done.task.id) == done.task
        replies = {key: driver.call(call_id).reply for key, call_id in waits.calls.items()}
        assert replies == {"a": error, "b": [1], "c": error}

    def test_who_comes_late_keeps_what_it_has_to_say(self, driver: Driver) -> None:
        waits = driver.caller("a")
        callee = driver.take("a")
        assert driver.store.reply(waits.calls["a"], CallStatus.OK, "first")
        done = driver.commit(callee.fence, Close(Outcome.SUCCESS, result="second"))
        assert done.task.result == "second"
        assert driver.task(done.task.id).result == "second"
        assert driver.call(waits.calls["a"]).reply == "first"
        assert [body_of(each)["body"] for each in driver.events("late")] == ["second"]

    def test_a_card_is_there_for_others_when_its_run_is_gone(
        self, driver: Driver, harness: Harness
    ) -> None:
        text, card = "y" * 300, card_of("y" * 300)
        old = Answered(driver, text)
        old.take_in(card, keep=hash_of(card))
        driver.commit(driver.take("caller").fence)
        harness.advance(HOUR)
        new = Answered(driver, text)
        new.take_in(card, keep=hash_of(card))
        assert driver.store.rotate(MINUTE) == 2
        assert driver.store.get_call(old.call_id) is None
        assert driver.store.get_task(old.callee) is None
        new.check(text)
