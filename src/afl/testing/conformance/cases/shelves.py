"""Cards and boxes, the outbox, locks, queries and rotation."""

from __future__ import annotations

import pytest

from afl.kernel.errors import BadRequest, NotFound
from afl.kernel.model import Announcement, Card, CardHash, Json, Outcome, RunId, State
from afl.kernel.port import Transaction
from afl.kernel.rules import card_hash
from afl.testing.conformance.cases.base import Cases
from afl.testing.conformance.driver import DAY, FAILED, HOUR, MINUTE, NOBODY, Driver
from afl.testing.conformance.harness import Harness


def _card(content: Json, kind: str = "note") -> Card:
    return Card(card_hash(kind, content), kind, content)


class CardCases(Cases):
    def test_cards_are_kept_by_their_hash(self, driver: Driver) -> None:
        cards = [_card({"a": [1, None, "ü"]}), _card(None), _card({"a": [1, None, "ü"]}, "other")]
        driver.store.put_cards(cards)
        driver.store.put_cards(cards[:1])
        hashes = [card.hash for card in (cards[2], cards[0], cards[0], cards[1])]
        assert driver.store.get_cards(hashes) == [cards[2], cards[0], cards[0], cards[1]]
        assert driver.store.get_cards([]) == []

    def test_a_hash_that_lies_is_refused(self, driver: Driver) -> None:
        good, bad = _card(1), Card(_card(2).hash, "note", 3)
        with pytest.raises(BadRequest):
            driver.store.put_cards([good, bad])
        with pytest.raises(NotFound):
            driver.store.get_cards([good.hash])

    def test_a_box_grows_at_its_end(self, driver: Driver) -> None:
        cards = [_card(n) for n in range(4)]
        a, b, c, d = (card.hash for card in cards)
        driver.store.put_cards(cards)
        assert driver.store.read_box("chat") == []
        assert driver.store.append_box("chat", [a, b], 0) == 2
        assert driver.store.append_box("chat", [c], 2) == 3
        assert driver.store.append_box("chat", [a, b], 0) == 2
        assert driver.store.append_box("chat", [b, c], 1) == 3
        assert driver.store.read_box("chat") == cards[:3]
        assert driver.store.read_box("chat", 2) == cards[2:3]
        assert driver.store.read_box("other") == []
        for hashes, at in (([d], 0), ([c, d], 2), ([d], 4), ([a], -1)):
            with pytest.raises(BadRequest):
                driver.store.append_box("chat", hashes, at)
        with pytest.raises(NotFound):
            driver.store.append_box("chat", [CardHash("sha256:0")], 3)
        assert driver.store.read_box("chat") == cards[:3]

    def test_the_box_of_a_task_is_its_own(self, driver: Driver) -> None:
        task = driver.enqueue()
        card = _card(1)
        driver.store.put_cards([card])
        with pytest.raises(BadRequest):
            driver.store.append_box(task.id, [card.hash], 0)


class OutboxCases(Cases):
    def test_entries_come_in_order_and_in_pages(self, driver: Driver) -> None:
        tasks = [driver.enqueue() for _ in range(5)]
        for task in tasks:
            driver.store.stop(task.id)
        entries = driver.store.read_outbox()
        assert [entry.task for entry in entries] == [task.id for task in tasks]
        assert [entry.id for entry in entries] == sorted({entry.id for entry in entries})
        assert driver.store.read_outbox(limit=2) == entries[:2]
        assert driver.store.read_outbox(after=entries[1].id, limit=2) == entries[2:4]
        assert driver.store.read_outbox(after=entries[-1].id) == []

    def test_an_announcement_is_there_when_its_transaction_is_committed(
        self, driver: Driver
    ) -> None:
        task = driver.enqueue()
        entry = Announcement("state", task.id, task.run, {"status": "running"})
        store = driver.store
        store.commit((), writes=lambda transaction: store.announce(transaction, entry))
        (read,) = store.read_outbox()
        assert (read.topic, read.task, read.run) == ("state", task.id, task.run)
        assert read.body == {"status": "running"}

    def test_an_announcement_of_an_abandoned_transaction_is_not_there(self, driver: Driver) -> None:
        task = driver.enqueue()

        def writes(transaction: Transaction) -> None:
            driver.store.announce(transaction, Announcement("state", task.id, task.run))
            raise KeyError("on purpose")

        with pytest.raises(KeyError):
            driver.store.commit((), writes=writes)
        assert driver.store.read_outbox() == []

    def test_the_kernels_own_topics_are_refused(self, driver: Driver) -> None:
        task = driver.enqueue()
        entry = Announcement("closed", task.id, task.run)
        store = driver.store
        with pytest.raises(BadRequest):
            store.commit((), writes=lambda transaction: store.announce(transaction, entry))

    def test_trimming_removes_what_was_read(self, driver: Driver) -> None:
        driver.trimmed = True
        for _ in range(3):
            driver.store.stop(driver.enqueue().id)
        one, two, three = driver.store.read_outbox()
        assert driver.store.trim_outbox(two.id) == 2
        assert driver.store.trim_outbox(one.id) == 0
        assert driver.store.read_outbox() == [three]
        driver.store.stop(driver.enqueue().id)
        assert driver.store.read_outbox()[-1].id > three.id


class LockCases(Cases):
    def test_a_lock_has_one_holder(self, driver: Driver) -> None:
        lock = driver.store.acquire_lock("k", "mine", MINUTE, {"who": ["me"]})
        assert lock is not None
        assert (lock.key, lock.token, lock.meta) == ("k", "mine", {"who": ["me"]})
        assert driver.store.get_lock("k") == lock
        assert driver.store.acquire_lock("k", "yours", MINUTE) is None
        assert driver.store.acquire_lock("other", "yours", MINUTE) is not None
        again = driver.store.acquire_lock("k", "mine", HOUR)
        assert again is not None
        assert again.expires_at > lock.expires_at

    def test_only_the_holder_extends_and_releases(self, driver: Driver) -> None:
        driver.store.acquire_lock("k", "mine", MINUTE)
        assert not driver.store.extend_lock("k", "yours", HOUR)
        assert not driver.store.release_lock("k", "yours")
        assert driver.store.extend_lock("k", "mine", HOUR)
        assert driver.store.release_lock("k", "mine")
        assert not driver.store.release_lock("k", "mine")
        assert driver.store.get_lock("k") is None

    def test_an_expired_lock_is_nobodys(self, driver: Driver, harness: Harness) -> None:
        driver.store.acquire_lock("k", "mine", MINUTE)
        harness.advance(MINUTE)
        assert driver.store.get_lock("k") is None
        assert not driver.store.extend_lock("k", "mine", HOUR)
        assert not driver.store.release_lock("k", "mine")
        assert driver.store.acquire_lock("k", "yours", MINUTE) is not None
        assert not driver.store.release_lock("k", "mine")


class QueryCases(Cases):
    def test_tasks_are_found_by_what_they_are(self, driver: Driver) -> None:
        one = driver.enqueue(run=RunId("r"))
        two = driver.enqueue(run=RunId("r"))
        three = driver.enqueue()
        driver.commit(driver.take().fence, FAILED)

        def ids(**query: object) -> list[str]:
            return [task.id for task in driver.store.find_tasks(**query)]  # type: ignore[arg-type]

        assert ids() == [one.id, two.id, three.id]
        assert ids(run="r") == [one.id, two.id]
        assert ids(state=State.READY) == [two.id, three.id]
        assert ids(run="r", state=State.READY) == [two.id]
        assert ids(outcome=Outcome.FAILED) == [one.id]
        assert ids(dead=True) == []
        assert ids(dead=False, limit=2) == [one.id, two.id]
        assert ids(after=one.id, limit=1) == [two.id]
        assert ids(run="nothing") == []

    def test_a_call_is_found_by_its_key(self, driver: Driver) -> None:
        caller, other = driver.caller("a", "b"), driver.caller("a")
        found = driver.store.find_call(caller.task.id, "a")
        assert found is not None
        assert found == driver.call(caller.calls["a"])
        assert found.id != other.calls["a"]
        assert driver.store.find_call(other.task.id, "b") is None
        assert driver.store.find_call(NOBODY, "a") is None

    def test_calls_are_found_by_their_keys(self, driver: Driver) -> None:
        caller = driver.caller("a", "b", "c")
        found = driver.store.find_calls(caller.task.id, ["a", "c", "nothing", "a"])
        assert {call.id for call in found} == {caller.calls["a"], caller.calls["c"]}
        assert driver.store.find_calls(caller.task.id, []) == []
        assert driver.store.find_calls(NOBODY, ["a"]) == []

    def test_tasks_stand_where_the_single_reads_say(self, driver: Driver) -> None:
        caller = driver.caller("a", "b")
        callee = driver.call(caller.calls["a"]).callee
        lonely = driver.enqueue(name="nobody.Serves")
        assert callee is not None
        tasks = [caller.task.id, callee, lonely.id, NOBODY]
        found = {each.task.id: each for each in driver.store.standing(tasks)}
        assert found.keys() == {caller.task.id, callee, lonely.id}
        for task, each in found.items():
            assert each.task == driver.task(task)
            assert each.reason == driver.store.why(task)
        first = found[caller.task.id].first_open
        assert first is not None
        assert first.id in caller.calls.values()
        assert found[lonely.id].first_open is None
        assert driver.store.standing([]) == []

    def test_what_is_not_there_is_none(self, driver: Driver) -> None:
        assert driver.store.get_task(NOBODY) is None
        assert driver.store.calls_of(NOBODY) == []


class RotationCases(Cases):
    def test_finished_runs_go_when_they_are_old(self, driver: Driver, harness: Harness) -> None:
        done = driver.caller("a", idem="once", name="work")
        driver.commit(driver.take("a").fence)
        driver.commit(driver.take().fence)
        open_run = driver.caller("b")
        harness.advance(HOUR)
        driver.commit(driver.take("b").fence)
        assert driver.store.rotate(DAY) == 0
        assert driver.store.rotate(MINUTE) == 2
        assert driver.store.get_task(done.task.id) is None
        assert driver.store.get_call(done.calls["a"]) is None
        assert driver.store.find_tasks(run=done.task.run) == []
        assert driver.task(open_run.task.id).state is State.READY
        assert driver.enqueue(idem="once").id != done.task.id
        assert len(driver.events("closed", done.task.id)) == 1

    def test_lost_workers_are_known_as_long_as_their_tasks(
        self, driver: Driver, harness: Harness
    ) -> None:
        driver.register("v", lease=MINUTE)
        task = driver.enqueue().id
        driver.take(worker="v")
        harness.advance(MINUTE)
        driver.sweep_all()
        driver.commit(driver.take().fence)
        assert [loss.worker for loss in driver.store.losses_of([task])] == ["v"]
        assert driver.store.losses_of([NOBODY]) == []
        harness.advance(HOUR)
        assert driver.store.rotate(MINUTE) == 1
        assert driver.store.losses_of([task]) == []

    def test_a_run_goes_whole_or_not_at_all(self, driver: Driver, harness: Harness) -> None:
        for _ in range(2):
            driver.enqueue(run=RunId("old"))
        driver.enqueue(run=RunId("half"))
        for claim in driver.claim(n=3):
            driver.commit(claim.fence)
        harness.advance(HOUR)
        driver.enqueue(run=RunId("half"))
        driver.commit(driver.take().fence)
        assert driver.store.rotate(MINUTE, limit=1) == 2
        assert driver.store.rotate(MINUTE) == 0
        assert len(driver.store.find_tasks(run=RunId("half"))) == 2
