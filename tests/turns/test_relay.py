from __future__ import annotations

import asyncio
import json
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from afl.kernel.errors import StoreUnavailable
from afl.kernel.memory import MemoryStore
from afl.kernel.model import (
    Announcement,
    Card,
    CardHash,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Continue,
    Json,
    Outcome,
    Task,
    TaskSpec,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.port import Transaction
from afl.testing.clock import SequentialIds, VirtualClock
from afl.turns import cards
from afl.turns.feed import MemoryFeed, token
from afl.turns.journal import Note
from afl.turns.model import Deliverable, Ending
from afl.turns.nats_feed import NatsFeed
from afl.turns.relay import END_BOX, OutboxRelay, deliverable_card
from tests.turns.driving import PATIENCE_SECONDS, task_of
from tests.turns.lasting_stores import LastingTurns

NATS = ("127.0.0.1", 4222)
WORKER = WorkerId("w")


class World:
    """A store in memory with turns of one agent, and a relay that a test moves."""

    def __init__(self) -> None:
        self.clock = VirtualClock(tick=timedelta(microseconds=1))
        self.kernel = MemoryStore(self.clock, SequentialIds())
        self.feed = MemoryFeed()
        self.relay = OutboxRelay(self.kernel, self.feed, "relay-1")
        lease = timedelta(seconds=30)
        self.kernel.register(WorkerSpec(WORKER, "w", handlers=("agent:default",), lease=lease))

    def turn(self, **more: object) -> Task:
        given: Json = {"agent": "ann", "instruction": "Tidy up."}
        spec = TaskSpec("turn", "agent:default", input=given, **more)  # type: ignore[arg-type]
        (task,) = self.kernel.enqueue([spec])
        return task

    def claim(self) -> Claim:
        (claim,) = self.kernel.claim(ClaimRequest(WORKER, ("agent:default",)))
        return claim

    def deliver(self, claim: Claim, text: str = "tidy") -> None:
        done = Deliverable(Ending.DONE, partial=False, fields={"text": text})
        self.kernel.commit(
            [Commit(claim.fence, Close(Outcome.SUCCESS), cards=(cards.write(done),))]
        )

    def announce(self, claim: Claim, topic: str, body: Json) -> None:
        def writes(transaction: Transaction) -> None:
            task = claim.task
            self.kernel.announce(transaction, Announcement(topic, task.id, task.run, body))

        self.kernel.commit([Commit(claim.fence, Continue())], writes=writes)

    def ends(self) -> list[dict[str, Json]]:
        return [body for subject, body in self.feed.published() if subject.endswith(".task")]

    def card(self, hash_: Json) -> Card:
        assert isinstance(hash_, str)
        (card,) = self.kernel.get_cards([CardHash(hash_)])
        return card


@pytest.fixture
def world() -> World:
    return World()


def delivered(card: Card) -> Deliverable:
    value = cards.read(card)
    assert isinstance(value, Deliverable)
    return value


# What is told


def test_a_turn_that_closes_is_told_once_with_its_deliverable(world: World) -> None:
    turn = world.turn()
    world.deliver(world.claim())
    world.relay.step()
    world.relay.step()
    ((subject, body),) = world.feed.published()
    assert subject == "evt.agent.ann.task"
    assert body["agent_turn_id"] == turn.id
    assert (body["status"], body["output_box_id"]) == ("success", turn.id)
    card = world.card(body["deliverable_card_id"])
    assert card in world.kernel.read_box(turn.id)
    assert delivered(card).fields == {"text": "tidy"}


def test_what_turns_announce_is_told_in_its_order(world: World) -> None:
    world.turn()
    claim = world.claim()
    world.announce(claim, "agent.state", {"agent": "a.b *", "status": "running"})
    world.kernel.commit([Commit(claim.fence, Close(Outcome.SUCCESS), number=1)])
    world.relay.step()
    subjects = [subject for subject, _ in world.feed.published()]
    assert subjects == [
        f"evt.agent.{token('a.b *')}.state",
        "evt.agent.ann.state",
        "evt.agent.ann.task",
    ]
    assert token("a.b *") == "a%2Eb%20%2A"


def test_steps_go_to_a_subject_of_their_own(world: World) -> None:
    world.turn()
    world.announce(world.claim(), "agent.step", {"agent": "ann", "step_id": 0})
    world.relay.step()
    ((subject, body),) = world.feed.published()
    assert (subject, body["step_id"]) == ("evt.agent.ann.step", 0)
    assert isinstance(body["event_id"], int)


def test_tasks_that_are_no_turns_are_not_told(world: World) -> None:
    world.kernel.enqueue([TaskSpec("event", "agent:default")])
    world.kernel.commit([Commit(world.claim().fence, Close(Outcome.SUCCESS))])
    assert world.relay.step() == 1
    assert world.feed.published() == []


def test_a_turn_of_a_facet_is_told_under_the_facets_name(world: World) -> None:
    (task,) = world.kernel.enqueue([TaskSpec("turn", "billing.Review", input={"facet": "x"})])
    world.kernel.stop(task.id)
    world.relay.step()
    subjects = [subject for subject, _ in world.feed.published()]
    assert subjects == [f"evt.agent.billing%2EReview.{what}" for what in ("state", "task")]


def test_an_entry_that_cannot_be_told_keeps_nobody_waiting(world: World) -> None:
    world.turn()
    claim = world.claim()
    world.announce(claim, "agent.state", {"no": "agent"})
    world.kernel.commit([Commit(claim.fence, Close(Outcome.SUCCESS), number=1)])
    world.relay.step()
    assert len(world.ends()) == 1


# Ends that the kernel makes


def stop(world: World, turn: Task) -> None:
    world.kernel.stop(turn.id)


def let_time_pass(world: World, turn: Task) -> None:
    world.clock.advance(timedelta(hours=2))
    world.kernel.sweep()


def crash(world: World, turn: Task) -> None:
    for _ in range(2):
        if world.kernel.claim(ClaimRequest(WORKER, ("agent:default",))):
            world.clock.advance(timedelta(minutes=1))
            world.kernel.sweep()
            world.kernel.renew(WORKER)


@pytest.mark.parametrize(
    ("end", "status", "ending"),
    [
        (stop, "canceled", Ending.STOPPED),
        (let_time_pass, "timeout", Ending.TIMEOUT),
        (crash, "failed", Ending.CRASHED),
    ],
)
def test_a_turn_that_the_kernel_ends_gets_a_deliverable_before_it_is_told(
    world: World, end: Callable[[World, Task], None], status: str, ending: Ending
) -> None:
    turn = world.turn(timeout=timedelta(hours=1), max_crashes=1)
    end(world, turn)
    world.relay.step()
    (body,) = world.ends()
    box = END_BOX.format(turn=turn.id)
    assert (body["status"], body["output_box_id"]) == (status, box)
    (card,) = world.kernel.read_box(box)
    assert card.hash == body["deliverable_card_id"]
    assert (delivered(card).ending, delivered(card).partial) == (ending, True)


def test_a_deliverable_is_made_once_however_many_make_it(world: World) -> None:
    turn = world.turn()
    world.kernel.stop(turn.id)
    task = task_of(world.kernel, turn.id)
    assert deliverable_card(world.kernel, task) == deliverable_card(world.kernel, task)
    assert len(world.kernel.read_box(END_BOX.format(turn=turn.id))) == 1


# Its place


def test_another_relay_goes_on_where_the_last_was(world: World) -> None:
    world.turn()
    world.deliver(world.claim())
    world.relay.step()
    other = OutboxRelay(world.kernel, world.feed, "relay-2")
    assert other.step() is None
    world.clock.advance(timedelta(minutes=1))
    world.turn()
    world.kernel.renew(WORKER)
    world.deliver(world.claim(), "again")
    assert other.step() == 1
    assert len(world.ends()) == 2
    # the first is back, and is told that it does not lead
    assert world.relay.step() is None


def test_what_was_told_and_not_noted_is_told_again_with_the_same_id(world: World) -> None:
    class Dying(MemoryFeed):
        def publish(self, subject: str, body: dict[str, Json]) -> None:
            super().publish(subject, body)
            raise StoreUnavailable("its process has died")

    dying = Dying()
    world.turn()
    world.deliver(world.claim())
    with pytest.raises(StoreUnavailable):
        OutboxRelay(world.kernel, dying, "relay-1").step()
    world.relay.step()
    assert world.feed.published() == dying.published()


def test_what_was_told_is_removed_and_what_came_meanwhile_stays(world: World) -> None:
    class Busy(MemoryFeed):
        def publish(self, subject: str, body: dict[str, Json]) -> None:
            super().publish(subject, body)
            if len(self.published()) == 1:
                world.deliver(world.claim(), "later")

    busy = Busy()
    world.turn()
    world.turn()
    world.deliver(world.claim())
    relay = OutboxRelay(world.kernel, busy, "relay-1")
    assert relay.step() == 1
    (left,) = world.kernel.read_outbox()
    assert left.topic == "closed"
    assert relay.step() == 1
    assert world.kernel.read_outbox() == []
    assert len(busy.published()) == 2
    world.turn()
    world.deliver(world.claim())
    # another one knows where to go on, although nothing of what was told is there any more
    other = OutboxRelay(world.kernel, busy, "relay-1")
    assert (other.step(), other.step()) == (1, 0)
    assert len(busy.published()) == 3


def test_what_died_between_its_note_and_the_removal_is_removed_later(world: World) -> None:
    class Dying(MemoryStore):
        def trim_outbox(self, up_to: int) -> int:
            raise StoreUnavailable("its process has died")

    world.kernel.__class__ = Dying
    world.turn()
    world.turn()
    world.deliver(world.claim())
    with pytest.raises(StoreUnavailable):
        world.relay.step()
    world.kernel.__class__ = MemoryStore
    world.deliver(world.claim())
    assert OutboxRelay(world.kernel, world.feed, "relay-1").step() == 1
    assert len(world.ends()) == 2
    assert world.kernel.read_outbox() == []


def test_a_relay_that_was_started_tells_by_itself(world: World) -> None:
    world.relay.start()
    world.turn()
    world.deliver(world.claim())
    assert world.feed.wait_for(lambda told: len(told) == 1, PATIENCE_SECONDS)
    world.relay.stop()
    assert world.relay.health.errors == 0


def test_the_ends_of_turns_on_a_database_are_told(lasting_turns: LastingTurns) -> None:
    feed = MemoryFeed()
    with lasting_turns.store(max_size=4) as store:
        kernel = store.kernel
        specs = [
            TaskSpec("turn", "agent:default", lane=f"a{n}", input={"agent": f"a{n}"})
            for n in (1, 2)
        ]
        done, stopped = kernel.enqueue(specs)
        kernel.register(WorkerSpec(WORKER, "w"))
        claim = kernel.take(WORKER, done.id)
        assert claim is not None
        fields = Deliverable(Ending.DONE, partial=False, fields={"text": "tidy"})
        kernel.commit([Commit(claim.fence, Close(Outcome.SUCCESS), cards=(cards.write(fields),))])
        kernel.stop(stopped.id)
        first, second = (OutboxRelay(kernel, feed, f"relay-{n}") for n in (1, 2))
        assert (first.step(), second.step()) == (2, None)
        first.stop()
        assert second.step() == 0
        told = {str(body["agent_id"]): body for _, body in feed.published() if "agent_id" in body}
        assert (told["a1"]["status"], told["a1"]["output_box_id"]) == ("success", done.id)
        assert told["a2"]["output_box_id"] == END_BOX.format(turn=stopped.id)
        (card,) = kernel.read_box(END_BOX.format(turn=stopped.id))
        assert (card.hash, delivered(card).ending) == (
            told["a2"]["deliverable_card_id"],
            Ending.STOPPED,
        )


# Over NATS


class Watcher:
    """Somebody who listens on NATS."""

    def __init__(self, url: str, subject: str) -> None:
        self._condition = threading.Condition()
        self.heard: list[tuple[str, dict[str, Json]]] = []
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._client = Client()
        self._thread = threading.Thread(target=self._run, args=(url, subject), daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE_SECONDS)

    def _run(self, url: str, subject: str) -> None:
        self._loop.run_until_complete(self._listen(url, subject))
        self._loop.run_forever()

    async def _listen(self, url: str, subject: str) -> None:
        await self._client.connect(url)
        await self._client.subscribe(subject, cb=self._hear)
        await self._client.flush()
        self._ready.set()

    async def _hear(self, message: Msg) -> None:
        with self._condition:
            self.heard.append((message.subject, json.loads(message.data)))
            self._condition.notify_all()

    def wait(self, count: int) -> list[tuple[str, dict[str, Json]]]:
        with self._condition:
            assert self._condition.wait_for(lambda: len(self.heard) >= count, PATIENCE_SECONDS)
            return list(self.heard)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._client.close(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def nats_url() -> str:
    try:
        socket.create_connection(NATS, timeout=1).close()
    except OSError:
        pytest.skip("there is no NATS to test with")
    return f"nats://{NATS[0]}:{NATS[1]}"


@pytest.fixture
def prefix() -> str:
    return f"test{secrets.token_hex(4)}."


@pytest.fixture
def watcher(nats_url: str, prefix: str) -> Iterator[Watcher]:
    made = Watcher(nats_url, f"{prefix}>")
    yield made
    made.close()


def test_the_end_of_a_turn_reaches_whoever_listens_on_nats(
    world: World, nats_url: str, prefix: str, watcher: Watcher
) -> None:
    feed = NatsFeed(nats_url, prefix)
    assert feed.wait_until_connected(PATIENCE_SECONDS)
    turn = world.turn()
    world.deliver(world.claim())
    OutboxRelay(world.kernel, feed, "relay").step()
    ((subject, body),) = watcher.wait(1)
    feed.close()
    assert subject == f"{prefix}evt.agent.ann.task"
    assert body["agent_turn_id"] == turn.id
    assert world.card(body["deliverable_card_id"]).kind == cards.DELIVERABLE


def test_a_stream_of_pieces_arrives_whole_and_in_order(
    nats_url: str, prefix: str, watcher: Watcher
) -> None:
    feed = NatsFeed(nats_url, prefix)
    assert feed.wait_until_connected(PATIENCE_SECONDS)
    for index in range(2000):
        feed.publish("str.agent.ann.chunk", {"index": index})
    feed.close()
    assert [body["index"] for _, body in watcher.wait(2000)] == list(range(2000))


def test_a_feed_without_nats_keeps_nobody_waiting() -> None:
    feed = NatsFeed("nats://127.0.0.1:1")
    for index in range(20_000):
        feed.publish("evt.agent.ann.state", {"index": index})
    assert not feed.wait_until_connected(0)
    feed.close()
    feed.publish("evt.agent.ann.state", {})


def test_a_journal_card_of_another_kind_is_no_deliverable(world: World) -> None:
    turn = world.turn()
    claim = world.claim()
    note = cards.write(Note("x"))
    world.kernel.commit([Commit(claim.fence, Close(Outcome.SUCCESS, {"a": 1}), cards=(note,))])
    box, hash_ = deliverable_card(world.kernel, task_of(world.kernel, turn.id))
    assert box == END_BOX.format(turn=turn.id)
    assert delivered(world.card(hash_)).fields == {"a": 1}
