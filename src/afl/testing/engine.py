"""An engine for tests of flows: in memory, on a clock that the test moves, in one thread.

    engine.compile(Path("flows"))
    engine.stub("demo.Charge", returns={"receipt": "r-1"})
    run = engine.run("demo.Close", {"month": "2026-08"})
    assert run.outputs == {"receipt": "r-1"}

The same test does the same in the same order every time. Nothing waits: where a flow sleeps, `run`
moves the clock.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING, Protocol

from afl.app.compiling import Source, compile_program
from afl.kernel.model import Close, Json, Task
from afl.kernel.port import Store
from afl.runtime.calls import SCRIPT
from afl.runtime.driver import AroundCommit, Driver, Work, carry_out, next_due
from afl.runtime.entities import Run
from afl.runtime.evaluator import Evaluator
from afl.runtime.handler_table import Handler, HandlerTable, Invocation
from afl.runtime.memory_store import MemoryStore
from afl.runtime.operations import Operations
from afl.runtime.plan import Plan
from afl.runtime.programs import Plans
from afl.runtime.states import RunState
from afl.runtime.working.outcomes import close_of_error, close_of_result, facet_of
from afl.runtime.working.scripts import run_script
from afl.testing.clock import SequentialIds, VirtualClock
from afl.testing.engine_clock import EngineClock
from afl.testing.engine_inbox import EngineInbox
from afl.testing.engine_stubs import Answers, BadStub, Stub

if TYPE_CHECKING:
    from afl.testing.engine_turns import FakeLlm

#: A wait that is longer than this was not meant to end by itself.
_LONGEST_WAIT = timedelta(days=3000)


class Stuck(AssertionError):
    """The run cannot go on by itself: somebody has to do what the test does not do."""


class Served(Protocol):
    """What has handlers for a program: an `afl.App`."""

    def table(self, plan: Plan, plans: Plans) -> HandlerTable: ...


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that has come to its end, or to where the test let it."""

    id: str
    state: str
    outputs: Mapping[str, Json]
    error: Mapping[str, Json] | None

    @classmethod
    def of(cls, run: Run) -> Finished:
        return cls(run.id, run.state, dict(run.outputs or {}), run.error)

    @property
    def success(self) -> bool:
        return self.state == RunState.COMPLETED


class Engine:
    """Drives runs to their end, or to where they wait."""

    def __init__(self, *, around_commit: AroundCommit = carry_out) -> None:
        virtual, ids = VirtualClock(), SequentialIds()
        self.store = MemoryStore(virtual, ids)
        self._driver = Driver(self.store, self._work, ids, around_commit=around_commit)
        self.clock = EngineClock(virtual, self)
        self.stubs: dict[str, Stub] = {}
        self.inbox = EngineInbox(self)
        self._around_commit = around_commit
        self._virtual = virtual
        self._fake_llm: FakeLlm | None = None
        self._apps: list[Served] = []
        self._tables: dict[tuple[Served, Plan], HandlerTable] = {}

    @property
    def kernel(self) -> Store:
        return self.store.kernel

    @property
    def evaluator(self) -> Evaluator:
        return self._driver.evaluator

    @property
    def operations(self) -> Operations:
        """All that can be done to runs: `cancel`, `pause`, `why` and so on."""
        return self._driver.operations

    @property
    def fake_llm(self) -> FakeLlm:
        """The models of the engine, which follow scripts. Needs the extra `agents`."""
        if self._fake_llm is None:
            # an extra that tests without models do not need
            from afl.testing.engine_turns import FakeLlm  # noqa: PLC0415

            self._fake_llm = self._driver.turns = FakeLlm(
                self.store,
                lambda: self.evaluator.plans,
                self._virtual,
                self._around_commit,
                self._facet_named,
            )
        return self._fake_llm

    def compile(self, source: Source) -> str:
        """Compiles and deploys a program, given as a text, files or a folder; its hash."""
        program = self.evaluator.plans.add(compile_program(source))
        self.store.deploy("default", program)
        return program

    def stub(
        self,
        facet: str,
        *,
        returns: Answers | None = None,
        raises: BaseException | type[BaseException] | None = None,
    ) -> Stub:
        """Has something stand in for the work of a facet.

        Args:
            facet: its name; the short one will do where only one facet has it.
            returns: what it answers, or a function that makes it from the arguments.
            raises: the error it fails with instead.
        """
        name = self._facet_named(facet)
        made = self.stubs[name] = Stub(name, returns or {}, raises)
        return made

    def use(self, app: Served) -> None:
        """Has the handlers of an app do the work of facets that are not stubbed."""
        self._apps.append(app)

    def prepare(self, other: Engine) -> None:
        """Gives another engine the program, the stubs and the apps of this one."""
        program = self.store.deployed()
        text = None if program is None else self.store.get_program(program)
        if text is not None:
            other.store.deploy("default", other.store.save_program(text))
        other.stubs.update(self.stubs)
        for facet, replies in self._fake_llm.scripts.items() if self._fake_llm else ():
            other.fake_llm.script(facet, *replies)
        for app in self._apps:
            other.use(app)

    def start(
        self, workflow: str, inputs: Mapping[str, Json] | None = None, **options: object
    ) -> Finished:
        """Starts a run and goes on as far as it can without time passing.

        Options are those of `Operations.submit`.
        """
        run = self.operations.submit(workflow, inputs, **options)  # type: ignore[arg-type]
        self.drive()
        return self.get(run.id)

    def run(
        self, workflow: str, inputs: Mapping[str, Json] | None = None, **options: object
    ) -> Finished:
        """Drives a run to its end; where it sleeps, the clock moves.

        Raises:
            Stuck: it waits for something that time does not bring; the message says what.
        """
        return self.finish(self.start(workflow, inputs, **options).id)

    def finish(self, run: str) -> Finished:
        """Drives a run that was started to its end."""
        self.drive()
        while not RunState.is_terminal((found := self.operations.get(run)).state):
            self._let_time_pass(found)
            self.drive()
        return Finished.of(found)

    def get(self, run: str) -> Finished:
        """A run as it stands."""
        return Finished.of(self.operations.get(run))

    def drive(self) -> None:
        """Goes on until nothing can at this time."""
        self._driver.drive()

    def restart(self) -> None:
        """As if the process had died: another worker, with no memory, goes on."""
        self._driver.restart()

    def _let_time_pass(self, run: Run) -> None:
        now = self.clock.now()
        due = next_due(self.kernel, now)
        unserved = self._driver.unserved()
        if unserved or due is None or due - now > _LONGEST_WAIT:
            raise Stuck(self._stuck(run, unserved))
        self.clock.jump(due)

    def _stuck(self, run: Run, unserved: list[Task]) -> str:
        if unserved:
            names = ", ".join(f"`{facet_of(task)}`" for task in unserved)
            first = facet_of(unserved[0])
            ways = {
                "human": ", or answer it: inbox.answer({...})",
                "turn": f', or script its model: fake_llm.script("{first}", {{...}})',
            }
            way = ways.get(unserved[0].kind, "")
            return f'Nobody does {names}. Stub it: stub("{first}", returns={{...}}){way}.'
        answers = "\n".join(answer.sentence for answer in self.operations.why(run.id).answers)
        return f"The run cannot go on:\n{answers}"

    def _facet_named(self, name: str) -> str:
        program = self.store.deployed()
        if program is None:
            raise BadStub("There is no program to stub a facet of. Call `engine.compile` first.")
        facets = self.evaluator.plans.get(program).program.facets
        names = [facet.name for facet in facets if facet.kind == "event"]
        found = [each for each in names if name in (each, each.rpartition(".")[2])]
        if len(found) == 1:
            return found[0]
        near = found or get_close_matches(name, names, n=1)
        hint = f" Did you mean {', '.join(f'`{each}`' for each in near)}?" if near else ""
        raise BadStub(f"The program has no event facet `{name}`.{hint}")

    # Serving

    def _work(self, task: Task) -> Work | None:
        stub = self.stubs.get(facet_of(task))
        if stub is not None:
            return lambda claimed: self._answer_of_stub(stub, claimed)
        if task.name == SCRIPT:
            return lambda claimed: _called(SCRIPT, run_script, claimed)
        handler = self._handler_of(task)
        if handler is None:
            return None
        return lambda claimed: _called(handler.name, handler.function, claimed)

    def _handler_of(self, task: Task) -> Handler | None:
        plan = self._plan_of(task)
        for app in self._apps if plan is not None else ():
            assert plan is not None
            table = self._tables.get((app, plan))
            if table is None:
                table = self._tables[app, plan] = app.table(plan, self.evaluator.plans)
            if (found := table.find(task.name)) is not None:
                return found
        return None

    def _plan_of(self, task: Task) -> Plan | None:
        given = task.input if isinstance(task.input, dict) else {}
        program = given.get("program")
        return self.evaluator.plans.get(program) if isinstance(program, str) else None

    def _answer_of_stub(self, stub: Stub, task: Task) -> Close:
        plan = self._plan_of(task)
        assert plan is not None
        return _called(stub.facet, lambda invocation: stub.answer(plan, invocation.params), task)


def _called(name: str, function: Callable[[Invocation], object], task: Task) -> Close:
    """What an attempt of a handler comes to. A stub that does not fit fails the test."""
    invocation = Invocation.of(task, threading.Event(), _no_deadline)
    try:
        answer = function(invocation)
        if inspect.isawaitable(answer):
            answer = asyncio.run(_awaited(answer))
    except BadStub:
        raise
    except Exception as error:  # noqa: BLE001 - a handler may raise anything; it fails the step
        return close_of_error(task, error)
    return close_of_result(name, answer)


async def _awaited(answer: object) -> object:
    assert inspect.isawaitable(answer)
    return await answer


def _no_deadline(by: timedelta) -> datetime | None:
    return None
