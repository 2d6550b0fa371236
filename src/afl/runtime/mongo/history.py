"""What happened in runs, and where their open work is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import nlargest
from typing import Any

from afl.kernel.model import State, TaskId
from afl.kernel.mongo.transaction import Document
from afl.kernel.mongo.values import to_micros, to_time
from afl.runtime.entities import Run
from afl.runtime.history import WORK, Happening, Moment, OpenWork
from afl.runtime.mongo.documents import run_of
from afl.runtime.mongo.superseded import MongoSuperseded
from afl.runtime.mongo.windows import MongoStepWindows
from afl.runtime.states import StepState
from afl.runtime.step import ROOT, WorkflowId, step_id

#: How many results that came too late are told of.
_LATE = 1000
_PAGE = 5000
_ENDS = {
    StepState.STATEMENT_COMPLETE: "done",
    StepState.STATEMENT_ERROR: "failed",
    StepState.STATEMENT_SKIPPED: "skipped",
}
_KIND = {"path": 1, "statement_id": 1, "facet_name": 1, "object_type": 1, "state": 1}
_STARTED = {"path": 1, "facet_name": 1, "created_at": 1}
_ENDED = {**_STARTED, "ended_at": 1, "state": 1, "error": 1, "skipped_because": 1, "frame": 1}


class MongoHistory(MongoStepWindows, MongoSuperseded):
    """See `history.History` for what each method promises."""

    def open_work(self, run: WorkflowId, limit: int = 2000) -> list[OpenWork]:
        find = self._database.find
        alive = {"caller": run, "alive": True}
        fields = dict.fromkeys(("parent_call", "kind", "state", "run_at", "worker"), 1)
        tasks = find("task", alive, fields=fields, limit=limit)
        if not tasks:
            return []
        waiting = {"_id": {"$in": [each["parent_call"] for each in tasks]}, "status": "open"}
        paths = {each["_id"]: _path(each["key"]) for each in find("call", waiting)}
        steps = self._kinds(run, list(paths.values()))
        workers = sorted({each["worker"] for each in tasks if each["worker"] is not None})
        now = to_micros(self._database.now())
        late = {"_id": {"$in": workers}, "expires_at": {"$lte": now}}
        lost = {each["_id"] for each in find("worker", late, fields={"_id": 1})}
        counts: Counter[OpenWork] = Counter()
        for task in tasks:
            step = steps.get(paths.get(task["parent_call"], "\0"))
            if step is not None:
                counts[_open(step, task, now, task["worker"] in lost)] += 1
        return [replace(work, steps=count) for work, count in counts.items()]

    def _kinds(self, run: WorkflowId, paths: Sequence[str]) -> dict[str, Document]:
        """What steps are, by path."""
        asked = {"_id": {"$in": [step_id(run, path) for path in paths]}}
        return {each["path"]: each for each in self._database.find("step", asked, fields=_KIND)}

    def dead_work(self, run: WorkflowId, limit: int = 2000) -> Mapping[str, int]:
        find = self._database.find
        failed = {"run": run, "has_error": True, "state": StepState.STATEMENT_ERROR}
        fields = {"path": 1, "statement_id": 1}
        steps = {
            each["path"]: each["statement_id"]
            for each in find("step", failed, fields=fields, limit=limit)
        }
        if not steps:
            return {}
        called = {"caller": run, "key": {"$in": list(steps)}}
        paths = {
            each["callee"]: each["key"]
            for each in find("call", called, fields={"key": 1, "callee": 1})
        }
        dead = {"_id": {"$in": [task for task in paths if task is not None]}, "dead": True}
        given_up = find("task", dead, fields={"_id": 1})
        return Counter(steps[paths[each["_id"]]] for each in given_up)

    def history(
        self,
        run: WorkflowId,
        *,
        before: Moment | None = None,
        problems_only: bool = False,
        limit: int = 100,
    ) -> list[Happening]:
        fitting = (
            each
            for each in self._happenings(run, before, problems_only, limit)
            if before is None or each.moment < before
        )
        return nlargest(limit, fitting, key=lambda each: each.moment)

    def _happenings(
        self, run: WorkflowId, before: Moment | None, problems_only: bool, limit: int
    ) -> Iterator[Happening]:
        """The last of each kind, enough of them."""
        wanted: Document = {"run": run, "object_type": {"$in": sorted(WORK)}}
        if problems_only:
            wanted["has_error"] = True
        begun = {**wanted, "skipped_because": {"$exists": False}}
        for each in self._last_steps(begun, "created_at", before, limit, _STARTED):
            moment = Moment(to_time(each["created_at"]), each["path"], "started")
            yield Happening(moment, each["facet_name"])
        for each in self._last_steps(wanted, "ended_at", before, limit, _ENDED):
            yield self._end_of(each)
        yield from self._late(run)
        yield from self._lost(run)

    def _last_steps(
        self,
        wanted: Document,
        field: str,
        before: Moment | None,
        limit: int,
        fields: Mapping[str, Any],
    ) -> list[Document]:
        """The steps to which something happened last, from about that moment back."""
        until: Document = {field: {"$exists": True}}
        if before is not None:
            at = to_micros(before.at)
            until = {"$or": [{field: {"$lt": at}}, {field: at, "path": {"$lte": before.path}}]}
        # one of them may have the moment itself
        return self._database.find(
            "step",
            {**wanted, **until},
            fields=fields,
            sort=[(field, -1), ("path", -1)],
            limit=limit + 1,
        )

    def _end_of(self, step: Document) -> Happening:
        reused = self._unpack_map(step.get("frame")).get("reused")
        return Happening(
            Moment(to_time(step["ended_at"]), step["path"], _ENDS[step["state"]]),
            step["facet_name"],
            error=self._unpack_map(step["error"]) if "error" in step else None,
            skipped_because=step.get("skipped_because"),
            reused=reused if isinstance(reused, str) else None,
        )

    def _late(self, run: WorkflowId) -> Iterator[Happening]:
        """Results that came too late."""
        late = self.get_superseded(run, limit=_LATE)
        steps = self._kinds(run, [each.path for each in late]) if late else {}
        for each in late:
            assert each.noted_at is not None
            facet = steps[each.path]["facet_name"] if each.path in steps else ""
            yield Happening(Moment(each.noted_at, each.path, "superseded"), facet, each.worker)

    def _lost(self, run: WorkflowId) -> Iterator[Happening]:
        """Workers that were lost with work of the run."""
        if self._database.find_one("loss", {}, {"_id": 1}) is None:
            return
        calls = self._database.find("call", {"caller": run}, fields={"key": 1, "callee": 1})
        paths = {each["callee"]: _path(each["key"]) for each in calls if each["callee"] is not None}
        paths[run] = ROOT
        tasks = [TaskId(task) for task in paths]
        for start in range(0, len(tasks), _PAGE):
            losses = self._kernel.losses_of(tasks[start : start + _PAGE])
            steps = self._kinds(run, [paths[loss.task] for loss in losses]) if losses else {}
            for loss in losses:
                path = paths[loss.task]
                facet = steps[path]["facet_name"] if path in steps else ""
                yield Happening(Moment(loss.at, path, "lost"), facet, loss.worker, loss.task)

    def forks_of(self, run: WorkflowId, limit: int = 100) -> list[Run]:
        found = self._database.find("run", {"fork_run": run}, sort=[("_id", -1)], limit=limit)
        return [run_of(self._values, each) for each in found]


def _path(call_key: str) -> str:
    """The path of the step that a call is made for."""
    return call_key.partition("#")[0]


def _open(step: Document, task: Document, now: int, is_lost: bool) -> OpenWork:
    return OpenWork(
        step["statement_id"],
        step["facet_name"],
        step["object_type"],
        step["state"],
        task["kind"],
        State(task["state"]),
        task["run_at"] <= now,
        is_lost,
        1,
    )
