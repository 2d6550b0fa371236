"""The process that tries a workflow: it reads what to do as JSON, and writes what became of it.

It is apart from the server because a workflow that somebody writes may use up any memory and time:
the process is limited, and killed if it takes too long. The run is in memory, on a clock that jumps
where the flow would wait. Nothing of the user's runs: no handler, no model, no script, no command.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches

from afl.base.errors import AflError
from afl.base.system import SystemIds
from afl.ir import model as ir
from afl.kernel.model import Close, Json, State, Task
from afl.runtime.calls import SCRIPT, WAIT
from afl.runtime.conversions import WrongValue
from afl.runtime.driver import Driver, Work, next_due
from afl.runtime.errors import BadInputs
from afl.runtime.memory_store import MemoryStore
from afl.runtime.states import RunState
from afl.runtime.views import Node
from afl.runtime.working.outcomes import close_of_result, facet_of
from afl.server.models.system import TryForm
from afl.server.program_views.compiling import compiled
from afl.server.program_views.made_up import MadeUp

MEMORY_BYTES = 1 << 30
SECONDS = 10.0
STEPS = 2000
#: A wait that is longer than this was not meant to end by itself.
_LONGEST_WAIT = timedelta(days=3000)
STOPPED = "stopped"


class TakesTooLong(Exception):
    """The run has used up what it may."""


@dataclass(slots=True)
class _Clock:
    """A clock that stands still until it is moved."""

    moment: datetime

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return self.moment.timestamp()


class Trial:
    """One run of a workflow in memory."""

    def __init__(self, program: ir.Program, stubs: Mapping[str, Mapping[str, Json]]) -> None:
        self._clock = _Clock(datetime.now(UTC))
        self._store = MemoryStore(self._clock)
        self._driver = Driver(self._store, self._work, SystemIds(), around_commit=self._bounded)
        plans = self._driver.evaluator.plans
        self._hash = plans.add(program)
        self._plan = plans.get(self._hash)
        self._made_up = MadeUp(program)
        self._stubs = dict(self._checked(name, values) for name, values in stubs.items())
        self._end = time.monotonic() + SECONDS
        self._answered = 0

    def run(self, workflow: str, inputs: Mapping[str, Json]) -> dict[str, Json]:
        """Drives the run to its end, or to where it can go no further."""
        operations = self._driver.operations
        made = operations.submit(workflow, inputs, program=self._hash)
        error: dict[str, Json] | None = None
        try:
            self._drive(made.id)
        except TakesTooLong as problem:
            error = {"type": "TakesTooLong", "message": str(problem)}
        found = operations.get(made.id)
        if error is None and not RunState.is_terminal(found.state):
            error = {"type": "Waits", "message": operations.why(made.id).sentence}
        root = operations.tree(made.id, limit=STEPS).root
        return {
            "state": found.state if error is None else STOPPED,
            "outputs": None if found.outputs is None else dict(found.outputs),
            "error": error or (None if found.error is None else dict(found.error)),
            "steps": [] if root is None else list(_steps(root)),
        }

    def _drive(self, run: str) -> None:
        operations = self._driver.operations
        self._driver.drive()
        while not RunState.is_terminal(operations.get(run).state):
            if not self._bring_events() and not self._let_time_pass():
                return
            self._driver.drive()

    def _bring_events(self) -> bool:
        """Gives every flow that waits for an event one."""
        waiting = [task for task in self._open_tasks() if task.name == WAIT]
        for task in waiting:
            given = task.input if isinstance(task.input, dict) else {}
            params = given.get("params")
            assert isinstance(params, dict)
            payload = self._stubs.get(WAIT, {"payload": {}})["payload"]
            self._driver.operations.emit(str(params["name"]), str(params["key"]), payload)
        return bool(waiting)

    def _let_time_pass(self) -> bool:
        now = self._clock.now()
        due = next_due(self._driver.kernel, now)
        if self._driver.unserved() or due is None or due - now > _LONGEST_WAIT:
            return False
        self._clock.moment = due
        return True

    def _open_tasks(self) -> Iterator[Task]:
        for state in (State.READY, State.WAITING):
            yield from self._driver.kernel.find_tasks(state=state, limit=STEPS)

    def _bounded(self, task: Task, commit: Callable[[], None]) -> None:
        if time.monotonic() > self._end:
            raise TakesTooLong(f"It was stopped after {SECONDS:g} s of work.")
        commit()

    # Stubs

    def _work(self, task: Task) -> Work | None:
        return self._answer

    def _answer(self, task: Task) -> Close:
        self._answered += 1
        if self._answered > STEPS:
            raise TakesTooLong(f"It was stopped after {STEPS} calls.")
        name = facet_of(task)
        if name in self._stubs:
            return close_of_result(name, self._stubs[name])
        facet = self._plan.facet(name).facet
        given = task.input if isinstance(task.input, dict) else {}
        own = facet.script
        if task.name == SCRIPT and own is not None and own.code == given.get("script"):
            # before a body it only changes the arguments
            return close_of_result(name, self._returns(facet) if facet.kind == "event" else {})
        return close_of_result(name, self._returns(facet))

    def _returns(self, facet: ir.Facet) -> dict[str, Json]:
        return self._made_up.record(facet.returns)

    def _checked(self, name: str, values: Mapping[str, Json]) -> tuple[str, dict[str, Json]]:
        """A stub with what it leaves out made up."""
        facets = {each.name: each for each in self._plan.program.facets if each.kind == "event"}
        found = [full for full in facets if name in (full, full.rpartition(".")[2])]
        if name not in found and len(found) != 1:
            near = get_close_matches(name, facets, n=1)
            hint = f" Did you mean `{near[0]}`?" if near else ""
            raise BadInputs(f"The program has no event facet `{name}` to stand in for.{hint}")
        facet = facets[name if name in found else found[0]]
        answer = {**self._returns(facet), **values}
        try:
            self._plan.conversions.record(answer, facet.returns, facet.name)
        except WrongValue as error:
            raise BadInputs(f"`{facet.name}` cannot answer this: {error}") from error
        return facet.name, answer


def _steps(node: Node) -> Iterator[Json]:
    for child in node.children:
        if child.facet and child.kind != "YieldAssignment":
            yield {"path": child.path, "facet": child.facet, "state": child.state}
        yield from _steps(child)


def main() -> None:
    """Does what standard input says, and tells on standard output."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    form = TryForm.model_validate_json(sys.stdin.buffer.read())
    answer: dict[str, Json]
    try:
        trial = Trial(compiled(form.files), form.stubs)
        answer = trial.run(form.workflow, form.inputs)
    except AflError as error:
        answer = {"code": error.code, "message": error.message}
    except MemoryError:
        answer = {
            "state": STOPPED,
            "outputs": None,
            "error": {"type": "TakesTooLong", "message": "It was stopped: it needs more memory."},
            "steps": [],
        }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
