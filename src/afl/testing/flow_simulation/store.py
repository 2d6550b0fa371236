"""The store of a simulation: the runtime's own, in memory, with a look at all that is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from afl.base.clock import Clock
from afl.base.ids import IdSource
from afl.kernel import memory
from afl.kernel.memory.tables import opened
from afl.kernel.model import CallSpec, Json, Swept
from afl.kernel.port import Transaction
from afl.runtime.entities import Run
from afl.runtime.memory_store import MemoryStore
from afl.runtime.persistence import IterationChanges, Loaded, Needed
from afl.runtime.states import ObjectType
from afl.runtime.step import StepDefinition, WorkflowId, parent_of
from afl.testing.simulation.ledger import Violation

#: A step of a run.
At = tuple[WorkflowId, str]


@dataclass(slots=True)
class Counts:
    """What shows that a schedule was a test at all."""

    turns: int = 0
    stale_writes_refused: int = 0
    mixed_reads_dropped: int = 0
    tasks_recovered: int = 0
    tasks_given_up: int = 0
    effects_repeated: int = 0
    outside_answers: int = 0
    inline_answers: int = 0
    answers_at_hand: int = 0
    answers_unseen: int = 0
    memories_lost: int = 0


class FlowStore(MemoryStore):
    """Checks every write against what was written before. Broken promises raise `Violation`."""

    def __init__(
        self, clock: Clock, ids: IdSource, kernel: type[memory.MemoryStore] = memory.MemoryStore
    ) -> None:
        super().__init__(clock, ids)
        self._kernel = kernel(clock, ids)
        self.counts = Counts()
        #: how often the work of a step was done, and how often its result was taken in
        self.effects: Counter[At] = Counter()
        self.taken: Counter[At] = Counter()
        self.ended: set[WorkflowId] = set()
        #: runs of workflows called as steps, by where they were called
        self.children: dict[At, WorkflowId] = {}
        self.calls: list[tuple[WorkflowId, CallSpec]] = []
        #: the most iterations of each foreach that were under way at once
        self.peaks: dict[At, int] = {}
        self._live: dict[At, set[str]] = {}
        #: is told that rows are about to be read
        self.on_load: Callable[[], None] | None = None

    def effect(self, run: WorkflowId, path: str) -> None:
        """The work of a step is done, in the world outside."""
        self.counts.effects_repeated += self.effects[run, path] > 0
        self.effects[run, path] += 1

    def sweep(self, limit: int) -> Swept:
        swept = self.kernel.sweep(limit)
        self.counts.tasks_recovered += swept.tasks_recovered
        self.counts.tasks_given_up += swept.tasks_given_up
        return swept

    def load(self, run: WorkflowId, needed: Needed) -> Loaded:
        if self.on_load is not None:
            self.on_load()
        return super().load(run, needed)

    # What runs write

    def write_run(self, transaction: Transaction, run: Run) -> None:
        super().write_run(transaction, run)
        if run.parent is not None and run.parent_path is not None:
            known = self.children.setdefault((run.parent, run.parent_path), run.id)
            if known != run.id:
                raise Violation("one run for each call", f"{run.parent_path} has two")

    def finish_run(
        self,
        transaction: Transaction,
        run: WorkflowId,
        state: str,
        outputs: Mapping[str, Json] | None,
        error: Mapping[str, Json] | None,
    ) -> None:
        if run in self.ended:
            raise Violation("a run ends once", f"{run} ends again as {state}")
        self.ended.add(run)
        super().finish_run(transaction, run, state, outputs, error)

    def write_changes(
        self, transaction: Transaction, run: WorkflowId, changes: IterationChanges
    ) -> None:
        rows = opened(transaction).tables[f"step:{run}"]
        if run in self.ended:
            raise Violation("an end is final", f"steps of {run} change after it")
        self.counts.turns += 1
        for step in changes.created_steps:
            if step.path in rows:
                raise Violation("every step is made once", step.path)
            if step.object_type == ObjectType.BLOCK and step.name.isdigit():
                self._live.setdefault((run, parent_of(step.path)), set()).add(step.path)
            # the work of a first turn may be done before the turn is written
            self.taken[run, step.path] += "answered" in step.frame
        for step in changes.updated_steps:
            before = rows.get(step.path)
            if before is None:
                raise Violation("every step is made once", f"{step.path} changes, and is not there")
            self._check_update(run, before, step)
        for step in (*changes.created_steps, *changes.updated_steps):
            if step.is_terminal:
                self._live.get((run, parent_of(step.path)), set()).discard(step.path)
        for at, live in self._live.items():
            self.peaks[at] = max(self.peaks.get(at, 0), len(live))
        self.calls += [(run, call) for call in changes.calls]
        super().write_changes(transaction, run, changes)

    def _check_update(self, run: WorkflowId, before: StepDefinition, after: StepDefinition) -> None:
        if before.is_terminal and (before.state, before.returns, before.error) != (
            after.state,
            after.returns,
            after.error,
        ):
            raise Violation("an end is final", f"{after.path} was {before} and is {after}")
        if "answered" in after.frame and "answered" not in before.frame:
            self.taken[run, after.path] += 1
