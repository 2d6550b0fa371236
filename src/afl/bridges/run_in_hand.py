"""One run, driven in one thread until it has ended: all that workers would do for it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any, cast

from afl.bridges.taking import TakingKernel, taking
from afl.bridges.turn_stores import turn_store
from afl.kernel.errors import Fenced, KernelError
from afl.kernel.model import (
    Claim,
    Commit,
    State,
    Task,
    TaskId,
    TaskSpec,
    WorkerId,
    WorkerSpec,
    WorkerState,
)
from afl.kernel.port import Store
from afl.kernel.working.hands import give_back
from afl.runtime.evaluator import Evaluator, Turn
from afl.runtime.handler_table import Invocation, params_of
from afl.runtime.runner import ToolRegistry
from afl.runtime.working.outcomes import close_of_error, close_of_result, facet_of
from afl.runtime.working.scripts import run_script
from afl.turns.budget_waits import wake_waiting
from afl.turns.grip import Grip
from afl.turns.loop import TurnLoop
from afl.turns.ports import TurnStore
from afl.turns.serving import Served, work_on

#: For how long others leave its work alone without a sign of life.
_LEASE = timedelta(hours=1)
_LOOK_SECONDS = 0.05
_PAGE = 1000
_SERVED = ("flow", "event", "turn", "script")


class RunInHand:
    """A run and all that it calls, in the hands of one worker. Used in one thread."""

    def __init__(
        self,
        evaluator: Evaluator,
        handlers: ToolRegistry,
        make_turns: Callable[[TurnStore], TurnLoop],
        root: Task,
        worker: WorkerId,
        sleep: Callable[[float], None],
        loop: asyncio.Runner,
    ) -> None:
        """
        Args:
            make_turns: what asks models for facets that have no handler, on the store that it is
                given.
            root: the task of the run.
        """
        self._evaluator = evaluator
        self._persistence = evaluator.persistence
        self._handlers = handlers
        self._sleep = sleep
        self._loop = loop
        self._root = root
        self._worker = worker
        self._taking = TakingKernel(self._persistence.kernel, worker, self._serves)
        self._kernel = cast("Store", self._taking)
        self._store = taking(turn_store(self._persistence), self._kernel)
        self._turns = make_turns(self._store)
        self._kernel.register(WorkerSpec(worker, worker, service="evaluator", lease=_LEASE))

    def to_the_end(self) -> None:
        """Until the run has ended, or nothing that happens here can move it."""
        while not self._is_over():
            self._kernel.renew(self._worker)
            if self._work():
                continue
            if self._kernel.sweep().total or wake_waiting(self._store):
                continue
            if not self._wait():
                return

    def leave(self) -> None:
        """Leaves nothing in hand: what a run that is over had called is of no use any more."""
        over = self._is_over()
        for claim in self._taking.taken:
            with suppress(KernelError):
                if over:
                    self._kernel.stop(claim.task.id, force=True)
                else:
                    give_back(self._kernel, claim.fence)
        with suppress(KernelError):
            self._kernel.set_worker_state(self._worker, WorkerState.SHUTDOWN)

    def _is_over(self) -> bool:
        task = self._kernel.get_task(self._root.id)
        return task is None or task.state is State.CLOSED

    # Work

    def _work(self) -> bool:
        """Does what is in hand, else what can be taken; tells whether there was anything."""
        if self._taking.taken:
            # it stays among what is taken while it is worked on, for whoever has to clean up
            self._do(self._taking.taken[0])
            self._taking.taken.popleft()
            return True
        now = self._persistence.now()
        for task in self._tasks(State.READY):
            if task.run_at <= now and self._serves(task):
                claim = self._kernel.take(self._worker, task.id)
                if claim is not None:
                    self._taking.taken.append(claim)
        return bool(self._taking.taken)

    def _tasks(self, state: State) -> Iterator[Task]:
        after: TaskId | None = None
        while page := self._kernel.find_tasks(
            run=self._root.run, state=state, after=after, limit=_PAGE
        ):
            yield from page
            after = page[-1].id

    def _serves(self, task: Task | TaskSpec) -> bool:
        """Whether it is done here. A person is asked, unless a handler of that name stands in."""
        if task.kind == "human":
            names = self._handlers.names()
            return task.name in names or task.name.rpartition(".")[2] in names
        return task.kind in _SERVED

    def _do(self, claim: Claim) -> None:
        task = claim.task
        # somebody may have stopped it meanwhile: then what we say does not count
        with suppress(Fenced):
            if task.kind == "flow":
                self._advance(claim)
            elif task.kind == "script":
                self._close(claim, lambda: run_script(_invocation(task)))
            elif self._handlers.has_handler(facet_of(task)):
                self._close(claim, lambda: self._handle(task))
            else:
                names = (task.name,)
                served = Served(((self._turns, names),))
                self._loop.run(work_on(self._kernel, served, Grip(claim)))

    def _advance(self, claim: Claim) -> None:
        turn = self._evaluator.evaluate(claim)
        self._commit(turn)
        while turn.goes_on:
            turn = self._evaluator.go_on(turn)
            self._commit(turn)

    def _commit(self, turn: Turn) -> None:
        self._kernel.commit(
            [turn.commit], writes=lambda transaction: self._evaluator.write(transaction, turn)
        )
        self._evaluator.accepted(turn)

    def _handle(self, task: Task) -> object:
        answer = self._handlers.handle(facet_of(task), params_of(task))
        if inspect.isawaitable(answer):
            return self._loop.run(_awaited(answer))
        return answer

    def _close(self, claim: Claim, work: Callable[[], object]) -> None:
        """What `continue_step` and `fail_step` do, as one transaction with the end of the task."""
        try:
            close = close_of_result(facet_of(claim.task), work())
        except Exception as error:  # noqa: BLE001 - whatever a handler raises fails its step
            close = close_of_error(claim.task, error)
        self._kernel.commit([Commit(claim.fence, close)])

    # Waiting

    def _wait(self) -> bool:
        """Waits for what time will bring, or others who are at it; false if there is neither."""
        now = self._persistence.now()
        soon = now + timedelta(seconds=_LOOK_SECONDS)
        moments = [soon for _ in self._tasks(State.RUNNING)]
        moments += [soon for task in self._tasks(State.QUEUED) if self._serves(task)]
        for task in self._tasks(State.READY):
            if self._serves(task):
                moments.append(max(task.run_at, soon))
            elif task.kind == "timer" and task.parent_call is not None:
                call = self._kernel.get_call(task.parent_call)
                moments += [] if call is None else [call.deadline]
        if not moments:
            return False
        self._sleep(max(0.0, (min(moments) - now).total_seconds()))
        return True


def _invocation(task: Task) -> Invocation:
    return Invocation(task, params_of(task), task.failures + 1)


async def _awaited(answer: Any) -> object:  # noqa: ANN401 - whatever can be awaited
    return await answer
