"""Steps: the part of `persistence.Runs` that grows with the work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from afl.kernel.mongo.transaction import opened
from afl.kernel.mongo.values import to_time
from afl.kernel.port import Transaction
from afl.runtime.mongo.changes import Changes
from afl.runtime.mongo.core import of_run
from afl.runtime.mongo.documents import STEP_FIELDS, step_of
from afl.runtime.mongo.tallying import MongoTallies
from afl.runtime.persistence import IterationChanges, Loaded, LogLine, Needed
from afl.runtime.states import TERMINAL
from afl.runtime.step import StepDefinition, StepId, WorkflowId, split_step_id, step_id
from afl.runtime.step_windows import below as stretch_below

IN_ORDER = [("_id", 1)]


class MongoSteps(MongoTallies):
    """See `persistence.Runs` for what each method promises."""

    def write_changes(
        self, transaction: Transaction, run: WorkflowId, changes: IterationChanges
    ) -> None:
        self.write_many(transaction, [(run, changes)])

    def write_many(
        self, transaction: Transaction, changes: Iterable[tuple[WorkflowId, IterationChanges]]
    ) -> None:
        Changes(opened(transaction), self._values, self._database.take_numbers).write(changes)

    def load(self, run: WorkflowId, needed: Needed) -> Loaded:
        steps: dict[str, StepDefinition] = {}
        yields: dict[str, list[StepDefinition]] = {}
        for step in self._needed_steps(run, needed):
            if step.path in needed.steps:
                steps[step.path] = step
            if step.yields_to is not None and step.yields_to in needed.yields:
                yields.setdefault(step.yields_to, []).append(step)
        waits: dict[str, list[str]] = {}
        if needed.waits:
            asked = {"run": run, "on": {"$in": list(needed.waits)}}
            for each in self._database.find("step_wait", asked, sort=IN_ORDER):
                waits.setdefault(each["on"], []).append(each["block"])
        return Loaded(steps, yields, waits)

    def _needed_steps(self, run: WorkflowId, needed: Needed) -> list[StepDefinition]:
        """In the order of paths."""
        by_id = {"_id": {"$in": [step_id(run, path) for path in needed.steps]}}
        if not needed.yields:
            return self._steps(by_id) if needed.steps else []
        by_yield = {"run": run, "yields_to": {"$in": list(needed.yields)}}
        return self._steps({"$or": [by_id, by_yield]} if needed.steps else by_yield)

    def get_step(self, step: StepId) -> StepDefinition | None:
        run, path = split_step_id(step)
        return self.load(run, Needed(steps=frozenset((path,)))).steps.get(path)

    def get_steps_by_workflow(
        self, run: WorkflowId, *, after: str | None = None, limit: int | None = None
    ) -> list[StepDefinition]:
        if limit == 0:
            return []
        return self._steps({"_id": later_than(run, after)}, limit or 0)

    def get_steps_by_state(
        self, run: WorkflowId, state: str, limit: int = 100
    ) -> list[StepDefinition]:
        return self._steps({"_id": of_run(run), "state": state}, limit)

    def get_unended_steps(self, run: WorkflowId, below: str) -> list[StepDefinition]:
        first, end = stretch_below(below)
        stretch = {"$gte": step_id(run, first), "$lt": step_id(run, end)}
        return self._steps({"_id": stretch, "state": {"$nin": sorted(TERMINAL)}})

    def count_steps(self, run: WorkflowId) -> Mapping[str, int]:
        counts: Counter[str] = Counter()
        for each in self.tally(run):
            counts[each.state] += each.steps
        return counts

    def get_logs(self, run: WorkflowId, limit: int = 1000) -> list[LogLine]:
        found = self._database.find("step_log", {"_id": of_run(run)}, sort=IN_ORDER, limit=limit)
        return [
            LogLine(each["path"], self._unpack_map(each["line"]), to_time(each["at"]))
            for each in found
        ]

    def _steps(self, where: Mapping[str, Any], limit: int = 0) -> list[StepDefinition]:
        """Steps in the order of their paths."""
        found = self._database.find("step", where, fields=STEP_FIELDS, sort=IN_ORDER, limit=limit)
        return [step_of(self._values, each) for each in found]


def later_than(run: WorkflowId, after: str | None) -> dict[str, Any]:
    """The ids of the steps of a run, from after a path."""
    stretch = of_run(run)
    if after is not None:
        stretch["$gt"] = step_id(run, after)
        del stretch["$gte"]
    return stretch
