"""What a server keeps, read over its API by those who would read it from the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NoReturn
from urllib.parse import quote

from afl.app.remote.errors import NeedsDatabase
from afl.app.remote.http import Connection
from afl.app.remote.records import decode
from afl.ir.codec import loads
from afl.kernel.errors import NotFound
from afl.kernel.model import Call, Json, Task, TaskId
from afl.runtime.entities import Run
from afl.runtime.errors import UnknownRun
from afl.runtime.persistence import Loaded, LogLine, Needed
from afl.runtime.plan import Plan
from afl.runtime.step import StepDefinition, StepId, WorkflowId, split_step_id

#: How many paths of steps a URL has room for.
_PATHS = 50


def listed(value: Json) -> list[Json]:
    """An answer that is a list."""
    assert isinstance(value, list)
    return value


def mapped(value: Json) -> dict[str, Json]:
    """An answer that is an object."""
    assert isinstance(value, dict)
    return value


def part(text: str) -> str:
    """A text as one part of a path."""
    return quote(text, safe="")


class _Missing:
    """Says in a sentence what cannot be had from a server."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NeedsDatabase(
            f"This needs the database itself (`{name}`), and AFL_DATABASE_URL names a server. Give "
            "the URL of its database, such as postgresql://host/name."
        )


class RemoteKernel(_Missing):
    """See `kernel.port.Store` for what each method promises."""

    def __init__(self, connection: Connection) -> None:
        self._http = connection

    def get_task(self, task: TaskId) -> Task | None:
        try:
            return decode(Task, self._http.get(f"/records/tasks/{part(task)}"))
        except NotFound:
            return None

    def find_call(self, caller: TaskId, key: str) -> Call | None:
        found = self._http.get(f"/records/runs/{part(caller)}/call", key=key)
        return None if found is None else decode(Call, found)


class RemoteReads(_Missing):
    """See `persistence` for what each method promises."""

    def __init__(self, connection: Connection) -> None:
        self._http = connection
        self.kernel = RemoteKernel(connection)

    def now(self) -> datetime:
        return decode(datetime, self._http.get("/records/now"))

    def get_run(self, run: WorkflowId) -> Run | None:
        try:
            return decode(Run, self._http.get(f"/records/runs/{part(run)}"))
        except UnknownRun:
            return None

    def get_step(self, step: StepId) -> StepDefinition | None:
        run, path = split_step_id(step)
        return next(iter(self._steps(run, [path])), None)

    def load(self, run: WorkflowId, needed: Needed) -> Loaded:
        """Steps by their paths."""
        paths = sorted(needed.steps)
        pages = (paths[at : at + _PATHS] for at in range(0, len(paths), _PATHS))
        return Loaded({row.path: row for page in pages for row in self._steps(run, page)})

    def get_steps_by_state(
        self, run: WorkflowId, state: str, limit: int = 100
    ) -> list[StepDefinition]:
        found = self._http.get(f"/records/runs/{part(run)}/steps", state=state, limit=limit)
        return [decode(StepDefinition, each) for each in listed(found)]

    def _steps(self, run: str, paths: Sequence[str]) -> list[StepDefinition]:
        found = self._http.get(f"/records/runs/{part(run)}/steps", path=list(paths))
        return [decode(StepDefinition, each) for each in listed(found)]

    def get_logs(self, run: WorkflowId, limit: int = 1000) -> list[LogLine]:
        found = self._http.get(f"/records/runs/{part(run)}/talk", limit=limit)
        return [decode(LogLine, each) for each in listed(found)]

    def deployments(self) -> Mapping[str, str]:
        lines = map(mapped, listed(self._http.get("/programs")))
        return {str(line["name"]): str(line["program"]) for line in lines}

    def close(self) -> None:
        self._http.close()


class RemotePlans:
    """Programs that are ready to be looked at, by their hash."""

    def __init__(self, connection: Connection) -> None:
        self._http = connection
        self._plans: dict[str, Plan] = {}

    def get(self, program: str) -> Plan:
        found = self._plans.get(program)
        if found is None:
            text = self._http.get(f"/programs/{part(program)}/compiled")
            found = self._plans[program] = Plan(loads(str(text)))
        return found


class RemoteEvaluator(_Missing):
    """The programs of a server. Nothing is evaluated here."""

    def __init__(self, connection: Connection) -> None:
        self.plans = RemotePlans(connection)
