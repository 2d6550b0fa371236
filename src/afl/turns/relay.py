"""The relay: tells watchers what the outbox says about turns, in its order.

It keeps its place in the outbox as a user lock that never ends, so it needs no table, and removes
what it has published: a turn of a hundred requests leaves three hundred entries, which nobody else
reads. One relay at a time works; another takes over where it was. What was published and not yet
noted is published again after a crash: entries carry their id, so watchers can tell.

Every closed turn has a deliverable. Where the kernel has ended a turn, nobody was there to write
it: the relay does, before it tells that the turn has ended.
"""

from __future__ import annotations

import logging
import random
from datetime import timedelta

from afl.kernel import rules
from afl.kernel.errors import BadRequest, KernelError, StoreUnavailable
from afl.kernel.model import Card, CardHash, Json, OutboxEntry, Task
from afl.kernel.port import Store
from afl.kernel.requests import MAX_DURATION
from afl.kernel.waiting import PollPolicy
from afl.kernel.working.health import LoopHealth
from afl.kernel.working.leading import Lead
from afl.kernel.working.loops import BackgroundLoop
from afl.turns import cards
from afl.turns.deliverable import ended
from afl.turns.feed import agent_of, state_subject, step_subject, task_subject
from afl.turns.model import TURN
from afl.turns.ports import LiveFeed
from afl.turns.telling import STATE, STEP

_log = logging.getLogger("afl.turns")
#: What the kernel announces by itself when a task has closed.
CLOSED = "closed"
END_BOX = "{turn}/end"
_LEAD, _PLACE = "afl.turns.relay", "afl.turns.relay.place"
_HELD = timedelta(seconds=4)
_BATCH = 200
_LOOK_SECONDS = 2.5


class OutboxRelay:
    """Publishes from `start` to `stop`, or one batch at a time with `step`."""

    def __init__(
        self, kernel: Store, feed: LiveFeed, owner: str, poll: PollPolicy | None = None
    ) -> None:
        """Neither the store nor the feed are closed with it.

        Args:
            owner: who this is, as no other relay is called.
        """
        self._kernel = kernel
        self._feed = feed
        self._lead = Lead(kernel, _LEAD, owner, _HELD)
        self._poll = poll or PollPolicy(0.05, 1.0)
        self._empty_looks = 0
        self._place: int | None = None
        self._background = BackgroundLoop("relay", self._look)

    @property
    def health(self) -> LoopHealth:
        return self._background.health

    def start(self) -> None:
        self._background.start()

    def stop(self) -> None:
        self._background.stop()
        self._lead.release()

    def step(self) -> int | None:
        """Publishes the next entries. Tells how many; None if another relay does this."""
        if not self._lead.take():
            self._place = None
            return None
        if self._place is None:
            self._place = self._read_place()
        entries = self._kernel.read_outbox(self._place, _BATCH)
        for entry in entries:
            self._relay(entry)
        if entries:
            self._place = entries[-1].id
            self._kernel.acquire_lock(_PLACE, _PLACE, MAX_DURATION, {"after": self._place})
            self._kernel.trim_outbox(self._place)
        return len(entries)

    def _look(self) -> float:
        done = self.step()
        if done is None:
            return _LOOK_SECONDS * random.uniform(0.75, 1.25)
        self._empty_looks = 0 if done else self._empty_looks + 1
        return 0.0 if done else self._poll.wait_seconds(self._empty_looks, random.random())

    def _read_place(self) -> int:
        noted = self._kernel.get_lock(_PLACE)
        place = noted.meta.get("after") if noted and isinstance(noted.meta, dict) else 0
        return place if isinstance(place, int) else 0

    def _relay(self, entry: OutboxEntry) -> None:
        """One entry that cannot be told must not keep the others from being told."""
        try:
            self._publish(entry)
        except StoreUnavailable:
            raise
        except (KernelError, ValueError, KeyError, TypeError):
            _log.warning("entry %s of the outbox cannot be told", entry.id, exc_info=True)

    def _publish(self, entry: OutboxEntry) -> None:
        if not isinstance(entry.body, dict):
            return
        if entry.topic == CLOSED:
            if entry.body.get("kind") == TURN:
                self._publish_end(entry)
        elif entry.topic in (STATE, STEP):
            subject = state_subject if entry.topic == STATE else step_subject
            self._feed.publish(subject(str(entry.body["agent"])), _told(entry, entry.body))

    def _publish_end(self, entry: OutboxEntry) -> None:
        task = self._kernel.get_task(entry.task)
        if task is None or task.outcome is None:
            return  # rotated away before anybody was told
        agent = agent_of(task)
        box, card = deliverable_card(self._kernel, task)
        if box != task.id:
            # who ends a turn by itself says that the agent is idle; the kernel does not
            idle: dict[str, Json] = {"agent": agent, "agent_turn_id": task.id, "status": "idle"}
            self._feed.publish(state_subject(agent), _told(entry, idle))
        body: dict[str, Json] = {
            "agent_id": agent,
            "agent_turn_id": task.id,
            "status": task.outcome.value,
            "output_box_id": box,
            "deliverable_card_id": card,
            "journal_box_id": task.id,
        }
        self._feed.publish(task_subject(agent), _told(entry, body))


def _told(entry: OutboxEntry, body: dict[str, Json]) -> dict[str, Json]:
    return {**body, "event_id": entry.id, "at": entry.created_at.isoformat()}


def deliverable_card(kernel: Store, task: Task) -> tuple[str, CardHash]:
    """The box and the card with what a closed turn delivers; it is made if nobody has made it.

    Doing it twice, or in two processes, comes to the same card.
    """
    journal = kernel.read_box(task.id)
    if journal and journal[-1].kind == cards.DELIVERABLE:
        return task.id, journal[-1].hash
    box = END_BOX.format(turn=task.id)
    there = kernel.read_box(box)
    if there:
        return box, there[0].hash
    spec = cards.write(ended(task, journal))
    card = Card(rules.card_hash(spec.kind, spec.content), spec.kind, spec.content)
    kernel.put_cards([card])
    try:
        kernel.append_box(box, [card.hash], at=0)
    except BadRequest:  # somebody was faster
        return box, kernel.read_box(box)[0].hash
    return box, card.hash
