"""Runs on a store under test: a program, work that a test decides, a driver that goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from afl.app.compiling import compile_program
from afl.kernel.model import Close, Json, Task
from afl.runtime.driver import Driver, Work
from afl.runtime.entities import Run
from afl.runtime.operations import Operations
from afl.runtime.working.outcomes import close_of_error, close_of_result
from afl.testing.clock import SequentialIds
from tests.runtime.kept import Kept

Handlers = Mapping[str, Callable[[dict[str, Json]], Mapping[str, Json]]]


@dataclass
class World:
    """A store with a program, on which runs go on when they are driven."""

    kept: Kept
    handlers: dict[str, Callable[..., Mapping[str, Json]]] = field(default_factory=dict)
    #: every attempt: the facet and its arguments
    done: list[tuple[str, Json]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.driver = Driver(self.kept.store, self._work, SequentialIds(1 << 40))

    @property
    def operations(self) -> Operations:
        return self.driver.operations

    def deploy(self, text: str) -> None:
        program = self.driver.evaluator.plans.add(compile_program(text))
        self.kept.store.deploy("default", program)

    def drive(self, run: Run) -> Run:
        self.driver.drive()
        return self.operations.get(run.id)

    def run(self, workflow: str, inputs: Mapping[str, Json] | None = None) -> Run:
        return self.drive(self.operations.submit(workflow, inputs))

    def _work(self, task: Task) -> Work | None:
        handler = self.handlers.get(task.short_name)
        if handler is None:
            return None
        found = handler

        def work(task: Task) -> Close:
            assert isinstance(task.input, dict)
            params = task.input["params"]
            assert isinstance(params, dict)
            self.done.append((task.short_name, params))
            try:
                return close_of_result(task.name, found(**params))
            except ValueError as error:
                return close_of_error(task, error)

        return work


def failing(message: str) -> Callable[..., Mapping[str, Json]]:
    def work(**_params: Json) -> Mapping[str, Json]:
        raise ValueError(message)

    return work
