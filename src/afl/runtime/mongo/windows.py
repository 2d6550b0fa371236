"""Windows on the steps of a run: each is read by index, however many steps there are."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from afl.kernel.mongo.transaction import Document
from afl.kernel.mongo.values import to_time
from afl.runtime.mongo.documents import STEP_FIELDS, step_of
from afl.runtime.mongo.steps import MongoSteps, later_than
from afl.runtime.step import StepDefinition, WorkflowId, is_below, step_id
from afl.runtime.step_windows import StepMatch, StepTimes, below

_BY_PATH = [("path", 1)]
#: So many of the tasks that a run waits for are looked at for its mark.
_MARKED_TASKS = 1000
_MARKS = ("state", "fence", "failures", "crashes", "stop_requested")
_FLOW_MARKS = (*_MARKS, "commits", "committed_fence", "seq", "open_calls", "untaken")
_RUN_MARKS = ("state", "pause_requested", "finished_at")
_TIMES = {"path": 1, "created_at": 1, "changed_at": 1, "ended_at": 1}


class MongoStepWindows(MongoSteps):
    """See `persistence.StepWindows` for what each method promises."""

    def child_steps(
        self, run: WorkflowId, parent: str, *, after: str | None = None, limit: int = 200
    ) -> list[StepDefinition]:
        where: Document = {"run": run, "parent": parent}
        if after is not None:
            where["path"] = {"$gt": after}
        return self._window(where, limit)

    def have_children(self, run: WorkflowId, paths: Sequence[str]) -> set[str]:
        right_in = {"run": run, "parent": {"$in": list(paths)}}
        found = set(self._database.distinct("step", "parent", right_in))
        # what is deeper stands in something that stands right in a step, if all of it is there
        rest = {path for path in paths if path not in found}
        while rest and (deeper := self._below_any(run, rest)):
            above = {path for path in rest if any(is_below(each, path) for each in deeper)}
            found |= above
            rest -= above
        return found

    def _below_any(self, run: WorkflowId, paths: Iterable[str]) -> list[str]:
        """Some paths of steps that are below any of these."""
        stretches = [
            {"_id": {"$gte": step_id(run, first), "$lt": step_id(run, end)}}
            for first, end in map(below, sorted(paths))
        ]
        found = self._database.find("step", {"$or": stretches}, fields={"path": 1}, limit=100)
        return [each["path"] for each in found]

    def problem_steps(
        self, run: WorkflowId, *, after: str | None = None, limit: int = 200
    ) -> list[StepDefinition]:
        where: Document = {"run": run, "has_error": True}
        if after is not None:
            where["path"] = {"$gt": after}
        return self._window(where, limit)

    def scan_steps(
        self,
        run: WorkflowId,
        match: StepMatch,
        *,
        after: str | None = None,
        limit: int = 200,
        most: int = 20_000,
    ) -> tuple[list[StepDefinition], str | None]:
        last = self._last_scanned(run, after, most)
        found: list[StepDefinition] = []
        start = after
        while True:
            page = self._candidates(run, match, start, last, limit)
            found += [step for step in page if match.fits(step)]
            if len(found) >= limit:
                return found[:limit], found[limit - 1].path
            if len(page) < limit:
                return found, last
            start = page[-1].path

    def _candidates(
        self, run: WorkflowId, match: StepMatch, after: str | None, last: str | None, limit: int
    ) -> list[StepDefinition]:
        """The next steps that may match; few of them do not."""
        where: Document = {"_id": later_than(run, after), **_conditions(match)}
        if last is not None:
            where["_id"]["$lte"] = step_id(run, last)
        return self._steps(where, limit)

    def _last_scanned(self, run: WorkflowId, after: str | None, most: int) -> str | None:
        """The last of the next steps, if there are so many. Read from the index alone."""
        pipeline: list[Document] = [
            {"$match": {"_id": later_than(run, after)}},
            {"$sort": {"_id": 1}},
            {"$skip": most - 1},
            {"$limit": 1},
            {"$project": {"_id": 1}},
        ]
        for each in self._database.aggregate("step", pipeline):
            return str(each["_id"]).removeprefix(step_id(run, ""))
        return None

    def step_times(self, run: WorkflowId, paths: Sequence[str]) -> Mapping[str, StepTimes]:
        asked = {"_id": {"$in": [step_id(run, path) for path in paths]}}
        return {
            each["path"]: StepTimes(
                to_time(each["created_at"]),
                to_time(each["changed_at"]),
                to_time(each.get("ended_at")),
            )
            for each in self._database.find("step", asked, fields=_TIMES)
        }

    def change_mark(self, run: WorkflowId) -> str:
        found = self._database.find_one("run", {"_id": run}, dict.fromkeys(_RUN_MARKS, 1))
        flow = self._database.find_one("task", {"_id": run}, dict.fromkeys(_FLOW_MARKS, 1))
        waits_for = self._database.find(
            "task",
            {"caller": run, "alive": True},
            fields=dict.fromkeys(_MARKS, 1),
            limit=_MARKED_TASKS,
        )
        parts = [_values(found, _RUN_MARKS), _values(flow, _FLOW_MARKS)]
        parts += sorted(_values(each, ("_id", *_MARKS)) for each in waits_for)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

    def _window(self, where: Mapping[str, Any], limit: int) -> list[StepDefinition]:
        found = self._database.find("step", where, fields=STEP_FIELDS, sort=_BY_PATH, limit=limit)
        return [step_of(self._values, each) for each in found]


def _conditions(match: StepMatch) -> Document:
    """What the server can tell: nothing that matches is left out."""
    wanted: Document = {}
    if match.states is not None:
        wanted["state"] = {"$in": sorted(match.states)}
    if match.facet is not None:
        wanted["facet_name"] = match.facet
    if match.statement is not None:
        wanted["statement_id"] = match.statement
    if match.text:
        wanted["$or"] = _has_text(match.text.lower())
    return wanted


def _has_text(text: str) -> list[Document]:
    """Where a text may be. What the server takes for the same letter is not what we do, but for
    plain ones: so whatever has others is looked at here."""
    sought = re.escape(text)
    return [
        {"message": {"$regex": sought}},
        *({field: {"$regex": sought, "$options": "i"}} for field in ("path", "facet_name")),
        *({field: {"$regex": r"[^\x00-\x7F]"}} for field in ("path", "facet_name")),
    ]


def _values(found: Document | None, fields: Sequence[str]) -> str:
    return "" if found is None else "\t".join(str(found.get(field)) for field in fields)
