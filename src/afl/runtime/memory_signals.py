"""Events from outside and the calls that wait for them, in memory.

Only what has come since the last look, events and waits alike, is looked at for pairs: whichever of
the two comes later finds the other.
"""

from __future__ import annotations

import secrets
from collections import deque
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count

from afl.kernel.machine.copies import json_out
from afl.kernel.memory.transaction import MemoryTransaction, Tables
from afl.kernel.model import CallStatus, Json, State, TaskId
from afl.kernel.requests import json_copy
from afl.runtime.memory_tables import MemoryTables
from afl.runtime.persistence import Await
from afl.runtime.step import WorkflowId

#: Every event that was ever emitted, by id, until it is forgotten.
_EVENTS = "event"
#: Ids of events that a call has been given and whose answer has not been settled.
_TAKEN = "event-taken"
#: Names and keys under which something has come since the last look.
_FRESH = "event-fresh"
_numbers = count()


@dataclass(frozen=True, slots=True)
class _Event:
    id: str
    number: str
    topic: str
    payload: Json
    run: WorkflowId | None = None
    call_key: str | None = None
    settled_at: datetime | None = None


class MemorySignals(MemoryTables):
    """See `persistence.Signals` for what each method promises."""

    def emit(self, name: str, key: str, payload: Json, *, id: str | None = None) -> bool:
        event = _Event(
            id=secrets.token_hex(16) if id is None else id,
            number=_next(),
            topic=_topic(name, key),
            payload=json_copy(payload, "the payload"),
        )

        def work(transaction: MemoryTransaction) -> bool:
            if event.id in transaction.tables[_EVENTS]:
                return False
            transaction.tables[_EVENTS][event.id] = event
            _offer(transaction.tables, event)
            return True

        return self._write(work)

    def match_events(self, limit: int = 100) -> list[tuple[WorkflowId, str, Json]]:
        def work(transaction: MemoryTransaction) -> list[tuple[WorkflowId, str, Json]]:
            tables = transaction.tables
            for id_ in list(tables[_TAKEN]):
                self._release_if_lost(tables, tables[_EVENTS][id_])
            for topic in sorted(tables[_FRESH]):
                self._pair(tables, topic)
                del tables[_FRESH][topic]
            taken = sorted((tables[_EVENTS][id_] for id_ in tables[_TAKEN]), key=_by_number)
            return [
                (each.run, each.call_key, json_out(each.payload))
                for each in taken[:limit]
                if each.run is not None and each.call_key is not None
            ]

        return self._write(work)

    def settle_event(self, run: WorkflowId, call_key: str) -> None:
        def work(transaction: MemoryTransaction) -> None:
            tables = transaction.tables
            id_ = tables[_given_to(run)].get(call_key, "")
            if id_ not in tables[_TAKEN] or self._release_if_lost(tables, tables[_EVENTS][id_]):
                return
            del tables[_TAKEN][id_]
            event = tables[_EVENTS][id_]
            tables[_EVENTS][id_] = replace(event, payload=None, settled_at=transaction.now)

        self._write(work)

    def _pair(self, tables: Tables, topic: str) -> None:
        """The oldest event to the oldest wait, as long as there are both."""
        waiting, events = tables[_waiting(topic)], tables[_untaken(topic)]
        untaken = deque(sorted(events))
        for number in sorted(waiting):
            if not untaken:
                break
            run, call_key = waiting.pop(number)
            del tables[_waits_of(run)][call_key]
            if self._ending(run, call_key) is None:
                id_ = events.pop(untaken.popleft())
                event = tables[_EVENTS][id_]
                tables[_EVENTS][id_] = replace(event, run=run, call_key=call_key)
                tables[_given_to(run)][call_key] = id_
                tables[_TAKEN][id_] = True
        if not waiting:
            tables.drop(_waiting(topic))
        if not events:
            tables.drop(_untaken(topic))

    def _release_if_lost(self, tables: Tables, event: _Event) -> bool:
        """Gives an event back whose call was answered with something else, or never will be."""
        assert event.run is not None
        assert event.call_key is not None
        if self._ending(event.run, event.call_key) in (None, CallStatus.OK):
            return False
        released = replace(event, run=None, call_key=None)
        tables[_EVENTS][event.id] = released
        del tables[_TAKEN][event.id]
        del tables[_given_to(event.run)][event.call_key]
        _offer(tables, released)
        return True

    def _ending(self, run: WorkflowId, call_key: str) -> CallStatus | None:
        """How a call ended that takes no answer any more; None if it does."""
        call = self._kernel.find_call(TaskId(run), call_key)
        if call is None:
            return None
        if call.status is not CallStatus.OPEN:
            return call.status
        flow = self._kernel.get_task(TaskId(run))
        return CallStatus.CANCELED if flow is None or flow.state is State.CLOSED else None


def await_event(tables: Tables, run: WorkflowId, awaited: Await) -> None:
    """Notes that a call waits for an event, unless it has one."""
    call_key, topic, number = awaited.call_key, _topic(awaited.name, awaited.key), _next()
    if call_key in tables[_waits_of(run)] or call_key in tables[_given_to(run)]:
        return
    tables[_waits_of(run)][call_key] = (topic, number)
    tables[_waiting(topic)][number] = (run, call_key)
    tables[_FRESH][topic] = True


def forget_waits(tables: Tables, run: str) -> None:
    """Nothing of this run waits for an event any more."""
    for topic, number in tables[_waits_of(run)].values():
        del tables[_waiting(topic)][number]
        if not tables[_waiting(topic)]:
            tables.drop(_waiting(topic))
    tables.drop(_waits_of(run))


def forget_events(tables: Tables, before: datetime) -> None:
    """Removes events that were settled before then."""
    for event in list(tables[_EVENTS].values()):
        if event.settled_at is not None and event.settled_at <= before:
            del tables[_EVENTS][event.id]
            tables[_given_to(event.run)].pop(event.call_key, None)
            if not tables[_given_to(event.run)]:
                tables.drop(_given_to(event.run))


def _offer(tables: Tables, event: _Event) -> None:
    tables[_untaken(event.topic)][event.number] = event.id
    tables[_FRESH][event.topic] = True


def _by_number(event: _Event) -> str:
    return event.number


def _next() -> str:
    return f"{next(_numbers):016}"


def _topic(name: str, key: str) -> str:
    return f"{name}\0{key}"


def _untaken(topic: str) -> str:
    """Events by number: their ids."""
    return f"event-untaken:{topic}"


def _waiting(topic: str) -> str:
    """Waits by number: their runs and the keys of their calls."""
    return f"event-waiting:{topic}"


def _waits_of(run: str) -> str:
    """The keys of calls of a run that wait: under which topic and number."""
    return f"event-waits:{run}"


def _given_to(run: str) -> str:
    """The keys of calls of a run that have been given an event: its id."""
    return f"event-given:{run}"
