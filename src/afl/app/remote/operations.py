"""`RemoteOperations`: what `Operations` does on a database, done by a server over its API."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from afl.app.errors import BadProgram
from afl.app.front_ends import is_pipeline
from afl.app.remote.http import Connection
from afl.app.remote.inbox import RemoteInbox
from afl.app.remote.reads import RemoteEvaluator, RemoteReads, listed, mapped, part
from afl.app.remote.records import decode
from afl.app.remote.schedules import RemoteSchedules
from afl.ir import model as ir
from afl.ir.codec import dumps
from afl.kernel.model import Json, Outcome, State, Task, Worker
from afl.kernel.waiting import PollPolicy
from afl.runtime.entities import Run
from afl.runtime.errors import RunCanceled, RunFailed, StillRunning
from afl.runtime.operations import Deployed, timeout_of
from afl.runtime.reasons import Answer, Why
from afl.runtime.scheduling.service import Synced
from afl.runtime.states import RunState
from afl.runtime.step import ROOT
from afl.runtime.submitting import Conflict
from afl.runtime.superseded import Superseded
from afl.runtime.views import Tree

_WAITING = PollPolicy(min_seconds=0.05, max_seconds=2.0, backoff=1.6, jitter=0.1)
_PAGE = 100
_HASH = "sha256:"


class RemoteOperations:
    """See `runtime.operations.Operations` for what each method promises. Threads may share one."""

    def __init__(self, connection: Connection) -> None:
        self._http = connection
        self.persistence = RemoteReads(connection)
        self.evaluator = RemoteEvaluator(connection)
        self.inbox = RemoteInbox(connection)
        self.schedules = RemoteSchedules(connection)

    # Starting

    def submit(
        self,
        workflow: str,
        inputs: Mapping[str, Json] | None = None,
        *,
        program: str = "default",
        key: str | None = None,
        conflict: str | Conflict = Conflict.ATTACH,
        labels: Mapping[str, str] | None = None,
        priority: int | None = None,
        deadline: timedelta | datetime | None = None,
    ) -> Run:
        form: dict[str, Json] = {
            "workflow": workflow,
            "inputs": dict(inputs or {}),
            "program": program,
            "key": key,
            "conflict": conflict.value if isinstance(conflict, Conflict) else conflict,
            "labels": dict(labels or {}),
            "priority": priority,
            "deadline": _written(timeout_of(deadline, self.persistence.now)),
        }
        # each request that arrives is a run, unless it attaches to the one that has its key
        is_keyed = key is not None and form["conflict"] == Conflict.ATTACH.value
        done = mapped(self._http.post("/runs", form, is_keyed=is_keyed))
        return self.get(_id(done["run"]))

    def deploy(
        self,
        program: ir.Program,
        name: str = "default",
        *,
        sources: Mapping[str, str] | None = None,
    ) -> Deployed:
        files: list[Json] = [{"name": file, "text": text} for file, text in (sources or {}).items()]
        form: dict[str, Json] = {"name": name, "files": files}
        # a pipeline is named by the folder that it was found in, which the server does not know
        if not files or any(is_pipeline(file) for file in sources or ()):
            form["compiled"] = dumps(program)
        done = mapped(self._http.post("/programs", form))
        if done["ok"] is not True:
            wrong = [mapped(each) for each in listed(done["diagnostics"])]
            lines = [f"{each['file']}:{each['line']}: {each['message']}" for each in wrong]
            raise BadProgram("\n".join(["The server cannot compile the flows.", *lines]))
        before = done["before"]
        return Deployed(
            str(done["program"]),
            None if before is None else str(before),
            decode(Synced, done["schedules"]),
        )

    def program(self, name: str = "default") -> str:
        if name.startswith(_HASH):
            return name
        return str(mapped(self._http.get(f"/programs/{part(name)}"))["program"])

    def rerun(self, run: str, *, program: str | None = None) -> Run:
        return self._made(run, "rerun", {"program": program})

    def retry(self, run: str, step: str | None = None, *, force: bool = False) -> Run:
        return self._made(run, "retry", {"step": step, "force": force})

    def fork(
        self,
        run: str,
        step: str = ROOT,
        inputs: Mapping[str, Json] | None = None,
        *,
        force: bool = False,
    ) -> Run:
        form: dict[str, Json] = {"step": step, "values": dict(inputs or {}), "force": force}
        return self._made(run, "fork", form)

    # Reading

    def get(self, run: str) -> Run:
        return decode(Run, self._http.get(f"/records/runs/{part(run)}"))

    def list(
        self,
        *,
        state: str | None = None,
        workflow: str | None = None,
        labels: Mapping[str, str] | None = None,
        parent: str | None = None,
        before: str | None = None,
        limit: int = _PAGE,
    ) -> list[Run]:
        found = self._http.get(
            "/records/runs",
            state=state,
            workflow=workflow,
            label=[f"{name}={text}" for name, text in (labels or {}).items()],
            parent=parent,
            before=before,
            limit=limit,
        )
        return [decode(Run, each) for each in listed(found)]

    def wait(self, run: str, timeout: timedelta | None = None) -> Run:
        end = None if timeout is None else time.monotonic() + timeout.total_seconds()
        looks = 0
        while True:
            found = self.get(run)
            if RunState.is_terminal(found.state):
                return found
            looks += 1
            seconds = _WAITING.wait_seconds(looks, 0.0)
            if end is not None:
                left = end - time.monotonic()
                if left <= 0:
                    why = self.why(run).sentence
                    raise StillRunning(f"Run {run} has not ended in time. {why}")
                seconds = min(seconds, left)
            time.sleep(seconds)

    def result(self, run: str, timeout: timedelta | None = None) -> Mapping[str, Json]:
        found = self.wait(run, timeout)
        if found.state == RunState.COMPLETED:
            return found.outputs or {}
        kind = RunCanceled if found.state == RunState.CANCELED else RunFailed
        raise kind(f"Run {run}: {self.why(run).sentence}")

    def why(self, run: str, step: str | None = None) -> Why:
        return decode(Why, self._http.get(f"/records/runs/{part(run)}/why", step=step))

    def superseded(self, run: str, *, limit: int = 100) -> Sequence[Superseded]:
        found = self._http.get(f"/records/runs/{part(run)}/superseded", limit=limit)
        return [decode(Superseded, each) for each in listed(found)]

    def tree(self, run: str, *, after: str | None = None, limit: int = 200) -> Tree:
        found = self._http.get(f"/records/runs/{part(run)}/tree", after=after, limit=limit)
        return decode(Tree, found)

    def export(self, run: str) -> dict[str, Json]:
        return mapped(self._http.get(f"/runs/{part(run)}/export"))

    # Changing what runs

    def cancel(self, run: str, *, force: bool = False, reason: str = "") -> Run:
        return self._changed(run, "cancel", {"force": force, "reason": reason})

    def pause(self, run: str) -> Run:
        return self._changed(run, "pause", {})

    def resume(self, run: str) -> Run:
        return self._changed(run, "resume", {})

    def continue_step(self, run: str, step: str, result: Mapping[str, Json]) -> bool:
        return self._act(run, "continue", {"step": step, "values": dict(result)})["done"] is True

    def fail_step(self, run: str, step: str, message: str, type: str = "Error") -> bool:
        form: dict[str, Json] = {"step": step, "reason": message, "error_type": type}
        return self._act(run, "fail", form)["done"] is True

    def skip(self, run: str, step: str) -> bool:
        return self._act(run, "skip", {"step": step})["done"] is True

    def _made(self, run: str, verb: str, form: Mapping[str, Json]) -> Run:
        return self.get(_id(self._act(run, verb, form)["run"]))

    def _changed(self, run: str, verb: str, form: Mapping[str, Json]) -> Run:
        self._act(run, verb, form)
        return self.get(run)

    def _act(self, run: str, verb: str, form: Mapping[str, Json]) -> dict[str, Json]:
        path = f"/runs/{part(run)}/actions/{verb}"
        return mapped(self._http.post(path, form, is_keyed=True))

    # Events from outside

    def emit(
        self, name: str, key: str = "", payload: Json = None, *, id: str | None = None
    ) -> bool:
        form: dict[str, Json] = {"name": name, "key": key, "payload": payload, "id": id}
        return mapped(self._http.post("/events", form, is_keyed=id is not None))["new"] is True

    # The queue

    def tasks(
        self,
        *,
        run: str | None = None,
        state: State | None = None,
        outcome: Outcome | None = None,
        after: str | None = None,
        limit: int = _PAGE,
    ) -> Sequence[Task]:
        found = self._http.get(
            "/records/tasks",
            run=run,
            state=None if state is None else state.value,
            outcome=None if outcome is None else outcome.value,
            after=after,
            limit=limit,
        )
        return [decode(Task, each) for each in listed(found)]

    def why_task(self, task: Task) -> Answer:
        return decode(Answer, self._http.get(f"/records/tasks/{part(task.id)}/why"))

    def workers(self) -> Sequence[Worker]:
        return [decode(Worker, each) for each in listed(self._http.get("/records/workers"))]

    def drain(self, worker: str) -> Worker:
        self._http.post(f"/workers/{part(worker)}/drain")
        return decode(Worker, self._http.get(f"/records/workers/{part(worker)}"))

    def dead_letters(self, *, after: str | None = None, limit: int = _PAGE) -> Sequence[Task]:
        found = self._http.get("/records/dead-letters", after=after, limit=limit)
        return [decode(Task, each) for each in listed(found)]

    def redrive(self, task: str) -> Task:
        made = mapped(self._http.post(f"/dead-letters/{part(task)}/redrive"))
        return decode(Task, self._http.get(f"/records/tasks/{part(_id(made))}"))


def _written(span: timedelta | None) -> str | None:
    return None if span is None else f"{span // timedelta(milliseconds=1)}ms"


def _id(line: Json) -> str:
    return str(mapped(line)["id"])
