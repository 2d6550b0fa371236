"""What turns change of runs, as operations of one transaction.

What the steps were before is read first: the tally needs it, and so do their times. That is one
look by index for all steps of all runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from pymongo import InsertOne, UpdateOne

from afl.kernel.mongo.transaction import Document, MongoTransaction, Operation
from afl.kernel.mongo.values import Values, to_micros
from afl.runtime.mongo.core import changed_to, packed, without_nulls
from afl.runtime.mongo.documents import step_document
from afl.runtime.mongo.tallying import TallyChanges
from afl.runtime.persistence import Await, IterationChanges, LogLine, Wait
from afl.runtime.step import StepDefinition, StepId, WorkflowId, step_id
from afl.runtime.tallies import Kind, kind_of

#: Gives the first of so many numbers that nobody had before.
TakeNumbers = Callable[[str, int], int]
_WAS = {"statement_id": 1, "facet_name": 1, "object_type": 1, "state": 1, "ended_at": 1}


class _Change(NamedTuple):
    run: WorkflowId
    step: StepDefinition
    is_same_params: bool


class Changes:
    """Writes what turns change, in one transaction."""

    def __init__(
        self, transaction: MongoTransaction, values: Values, take_numbers: TakeNumbers
    ) -> None:
        self._transaction = transaction
        self._values = values
        self._take_numbers = take_numbers
        self._now = to_micros(transaction.now)

    def write(self, changes: Iterable[tuple[WorkflowId, IterationChanges]]) -> None:
        """Writes the changes of several runs. Of a step that is named twice, the last counts."""
        steps: dict[StepId, _Change] = {}
        waits: list[tuple[WorkflowId, Wait]] = []
        logs: list[tuple[WorkflowId, LogLine]] = []
        awaits: list[tuple[WorkflowId, Await]] = []
        for run, each in changes:
            for step in (*each.created_steps, *each.updated_steps):
                change = _Change(run, step, step.path in each.same_params)
                steps[step_id(run, step.path)] = change
            waits += [(run, wait) for wait in each.waits]
            logs += [(run, line) for line in each.logs]
            awaits += [(run, awaited) for awaited in each.awaits]
        if steps:
            self._write_steps(steps)
        self._transaction.write("step_wait", *(_wait(run, wait) for run, wait in waits))
        if logs:
            self._write_logs(logs)
        if awaits:
            self._write_awaits(awaits)

    def _write_steps(self, steps: dict[StepId, _Change]) -> None:
        there = {"_id": {"$in": list(steps)}}
        known = {each["_id"]: each for each in self._transaction.find("step", there, fields=_WAS)}
        tally = TallyChanges()
        made: list[Operation] = []
        changed: list[Operation] = []
        for id_, change in steps.items():
            was = known.get(id_)
            tally.count(change.run, None if was is None else _kind(was), kind_of(change.step))
            if was is None:
                made.append(InsertOne(without_nulls(self._document(change, None))))
            else:
                document = self._document(change, was)
                changed.append(UpdateOne({"_id": document.pop("_id")}, changed_to(document)))
        # those of a kind together are one round trip
        self._transaction.write("step", *made, *changed)
        self._transaction.write("step_tally", *tally.operations())

    def _document(self, change: _Change, was: Document | None) -> Document:
        is_same = was is not None and change.is_same_params
        document = step_document(self._values, change.run, change.step, is_same_params=is_same)
        ended_at = None
        if change.step.is_terminal:
            ended_at = self._now if was is None else was.get("ended_at", self._now)
        times = {"changed_at": self._now, "ended_at": ended_at}
        return {**document, **times} if was else {**document, "created_at": self._now, **times}

    def _write_logs(self, logs: list[tuple[WorkflowId, LogLine]]) -> None:
        first = self._take_numbers("step_log", len(logs))
        for number, (run, line) in enumerate(logs, first):
            kept = {
                "_id": f"{run}:{number:016}",
                "run": run,
                "path": line.path,
                "line": packed(self._values, line.values),
                "at": self._now,
            }
            self._transaction.write("step_log", InsertOne(kept))

    def _write_awaits(self, awaits: list[tuple[WorkflowId, Await]]) -> None:
        """Notes that calls wait for events, unless they have one."""
        calls = [{"run": run, "call_key": awaited.call_key} for run, awaited in awaits]
        given = self._transaction.find("signal", {"$or": calls}, fields={"run": 1, "call_key": 1})
        taken = {(each["run"], each["call_key"]) for each in given}
        first = self._take_numbers("signal_wait", len(awaits))
        for number, (run, awaited) in enumerate(awaits, first):
            if (run, awaited.call_key) not in taken:
                self._transaction.write("signal_wait", _awaited(run, awaited, number))


def _kind(was: Document) -> Kind:
    return was["statement_id"], was["facet_name"], was["object_type"], was["state"]


def _wait(run: WorkflowId, wait: Wait) -> Operation:
    # no path has this letter
    id_ = f"{run}:{wait.on}\0{wait.block}"
    kept = {"run": run, "on": wait.on, "block": wait.block}
    return UpdateOne({"_id": id_}, {"$setOnInsert": kept}, upsert=True)


def _awaited(run: WorkflowId, awaited: Await, number: int) -> Operation:
    kept = {
        "run": run,
        "call_key": awaited.call_key,
        "number": number,
        "name": awaited.name,
        "key": awaited.key,
        "fresh": True,
    }
    by_call = {"_id": f"{run}:{awaited.call_key}"}
    return UpdateOne(by_call, {"$setOnInsert": kept}, upsert=True)
