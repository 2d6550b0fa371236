"""Events from outside and the calls that wait for them.

Only what has come since the last look, events and waits alike, is looked at for pairs: whichever of
the two comes later finds the other. Looks take turns: each writes the same document.

An event is `untaken`, `taken` by a call, or `settled`: then it is kept for its id alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pymongo import DeleteMany, InsertOne, UpdateMany, UpdateOne

from afl.kernel.model import CallStatus, Json, State
from afl.kernel.mongo.refusals import LostRace
from afl.kernel.mongo.transaction import Document, MongoTransaction
from afl.kernel.mongo.values import to_micros
from afl.kernel.requests import json_copy
from afl.runtime.mongo.core import MongoCore
from afl.runtime.step import WorkflowId

_OLDEST_FIRST = [("number", 1)]
_PAGE = 200
#: So often a look waits for its turn.
_LOOKS = 10
_GIVE_BACK = {
    "$set": {"state": "untaken", "fresh": True},
    "$unset": {"run": "", "call_key": ""},
}


class _Waiting(NamedTuple):
    """A call of a run."""

    run: WorkflowId
    call_key: str


class MongoSignals(MongoCore):
    """See `persistence.Signals` for what each method promises."""

    def emit(self, name: str, key: str, payload: Json, *, id: str | None = None) -> bool:
        event = {
            "_id": secrets.token_hex(16) if id is None else id,
            "number": self._database.take_numbers("signal", 1),
            "name": name,
            "key": key,
            "payload": self._pack(json_copy(payload, "the payload")),
            "state": "untaken",
            "fresh": True,
        }

        def work(transaction: MongoTransaction) -> bool:
            known = transaction.find_one("signal", {"_id": event["_id"]}, fields={"_id": 1})
            if known is None:
                emitted = {**event, "emitted_at": to_micros(transaction.now)}
                transaction.write("signal", InsertOne(emitted))
            return known is None

        return self._write(work)

    def match_events(self, limit: int = 100) -> list[tuple[WorkflowId, str, Json]]:
        if not self._is_anything_to_match():
            return []
        try:
            taken = self._database.transact(lambda each: _match(each, limit), tries=_LOOKS)
        except LostRace:
            return []  # somebody else looks all the time, or has died while looking
        return [
            (WorkflowId(each["run"]), each["call_key"], self._values.unpack(each["payload"]))
            for each in taken
        ]

    def settle_event(self, run: WorkflowId, call_key: str) -> None:
        def work(transaction: MongoTransaction) -> None:
            given = {"run": run, "call_key": call_key, "state": "taken"}
            if transaction.find_one("signal", given, fields={"_id": 1}) is None:
                return
            call = _Waiting(run, call_key)
            if _endings(transaction, [call]).get(call) in (None, CallStatus.OK.value):
                settled = {"state": "settled", "settled_at": to_micros(transaction.now)}
                change: Document = {"$set": settled, "$unset": {"payload": ""}}
            else:
                change = _GIVE_BACK
            transaction.write("signal", UpdateOne(given, change))

        self._write(work)

    def _is_anything_to_match(self) -> bool:
        """Whether a look can find anything. Most find nothing, and need no transaction."""
        return any(
            self._database.find_one(collection, where, {"_id": 1}) is not None
            for collection, where in (
                ("signal", {"state": "taken"}),
                ("signal", {"fresh": True}),
                ("signal_wait", {"fresh": True}),
            )
        )


def _match(transaction: MongoTransaction, limit: int) -> list[Document]:
    """Pairs what is new; answers the events that calls were given, the oldest first."""
    # one at a time: two could each look for what the other one has not seen
    turn = UpdateOne({"_id": "signals"}, {"$inc": {"looks": 1}}, upsert=True)
    transaction.update("turn", turn)
    _release_lost(transaction)
    events = transaction.find("signal", {"fresh": True}, sort=_OLDEST_FIRST, limit=limit)
    waits = transaction.find("signal_wait", {"fresh": True}, sort=_OLDEST_FIRST, limit=limit)
    for name, key in sorted({(each["name"], each["key"]) for each in (*events, *waits)}):
        _pair(transaction, name, key)
    for collection, seen in (("signal", events), ("signal_wait", waits)):
        # exactly those: what has come meanwhile was not seen
        if seen:
            these = {"_id": {"$in": [each["_id"] for each in seen]}}
            transaction.write(collection, UpdateMany(these, {"$unset": {"fresh": ""}}))
    return transaction.find("signal", {"state": "taken"}, sort=_OLDEST_FIRST, limit=limit)


def _release_lost(transaction: MongoTransaction) -> None:
    """An event whose call has ended otherwise is for the next one."""
    fields = {"run": 1, "call_key": 1}
    taken = transaction.find("signal", {"state": "taken"}, fields=fields)
    endings = _endings(transaction, map(_waiting, taken))
    for each in taken:
        if endings.get(_waiting(each)) not in (None, CallStatus.OK.value):
            transaction.write("signal", UpdateOne({"_id": each["_id"]}, _GIVE_BACK))


def _pair(transaction: MongoTransaction, name: str, key: str) -> None:
    """The oldest event to the oldest call that waits for it, as long as there are both."""
    topic = {"name": name, "key": key}
    untaken = {**topic, "state": "untaken"}
    while transaction.find_one("signal", untaken, fields={"_id": 1}) is not None:
        waits = transaction.find("signal_wait", topic, sort=_OLDEST_FIRST, limit=_PAGE)
        if not waits:
            return
        over = _over(transaction, [_waiting(each) for each in waits])
        live = [each for each in waits if _waiting(each) not in over]
        events = transaction.find(
            "signal", untaken, fields={"_id": 1}, sort=_OLDEST_FIRST, limit=max(len(live), 1)
        )
        for event, wait in zip(events, live, strict=False):
            given = {"state": "taken", "run": wait["run"], "call_key": wait["call_key"]}
            change = {"$set": given, "$unset": {"fresh": ""}}
            transaction.write("signal", UpdateOne({"_id": event["_id"]}, change))
        left = {each["_id"] for each in live[len(events) :]}
        gone = [each["_id"] for each in waits if each["_id"] not in left]
        transaction.write("signal_wait", DeleteMany({"_id": {"$in": gone}}))


def _over(transaction: MongoTransaction, calls: Sequence[_Waiting]) -> set[_Waiting]:
    """Those of the calls that take no answer any more: they or their runs have ended."""
    runs = sorted({call.run for call in calls})
    ended = transaction.find(
        "run", {"_id": {"$in": runs}, "finished_at": {"$exists": True}}, fields={"_id": 1}
    )
    gone = {each["_id"] for each in ended}
    endings = _endings(transaction, calls)
    return {call for call in calls if call.run in gone or endings.get(call) is not None}


def _endings(transaction: MongoTransaction, calls: Iterable[_Waiting]) -> dict[_Waiting, str]:
    """How those of the calls ended that take no answer any more."""
    asked = list(calls)
    if not asked:
        return {}
    runs = sorted({call.run for call in asked})
    closed = transaction.find(
        "task", {"_id": {"$in": runs}, "state": State.CLOSED.value}, fields={"_id": 1}
    )
    gone = {each["_id"] for each in closed}
    by_key: list[dict[str, Any]] = [{"caller": call.run, "key": call.call_key} for call in asked]
    found = transaction.find("call", {"$or": by_key}, fields={"caller": 1, "key": 1, "status": 1})
    endings: dict[_Waiting, str] = {}
    for each in found:
        call = _Waiting(each["caller"], each["key"])
        if each["status"] != CallStatus.OPEN.value:
            endings[call] = each["status"]
        elif call.run in gone:
            endings[call] = CallStatus.CANCELED.value
    return endings


def _waiting(found: Document) -> _Waiting:
    return _Waiting(found["run"], found["call_key"])
