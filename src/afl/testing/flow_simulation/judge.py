"""The verdict at the end of a schedule: every run came to what the reference says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from afl.kernel.model import CallStatus, Json, State, TaskId
from afl.runtime.context import count
from afl.runtime.entities import Run
from afl.runtime.states import RunState, StepState
from afl.runtime.step import ROOT, StepDefinition, WorkflowId
from afl.testing.conformance.invariants import check
from afl.testing.flow_simulation.answers import EVENTS
from afl.testing.flow_simulation.cases import Case
from afl.testing.flow_simulation.expected import Expected, Row, Status
from afl.testing.flow_simulation.store import FlowStore
from afl.testing.simulation.ledger import Violation

_STATES = {
    StepState.STATEMENT_COMPLETE: Status.COMPLETE,
    StepState.STATEMENT_ERROR: Status.FAILED,
    StepState.STATEMENT_SKIPPED: Status.SKIPPED,
}
_ALL = 100_000


def judge(store: FlowStore, case: Case, runs: Sequence[WorkflowId]) -> None:
    """Raises `Violation` for the first promise that was not kept."""
    judged: set[WorkflowId] = set()
    for run in runs:
        _Judge(store, case, judged).run(run, case.expected)
    _check_kernel(store, judged)


class _Judge:
    def __init__(self, store: FlowStore, case: Case, judged: set[WorkflowId]) -> None:
        self._store = store
        self._case = case
        self._judged = judged

    def run(self, id: WorkflowId, expected: Expected) -> None:
        run = self._store.get_run(id)
        if run is None:
            raise Violation("nothing lost, nothing added", f"run {id}")
        self._judged.add(id)
        rows = {row.path: row for row in self._store.get_steps_by_workflow(id)}
        self._check_rows(rows, expected)
        self._check_end(run, expected)
        self._check_work(id, rows, expected)
        for path, limit in expected.limits.items():
            if self._store.peaks.get((id, path), 0) > limit:
                raise Violation("no more at once than the limit", f"{path}, {limit}")
        for path, child in expected.children.items():
            found = self._store.children.get((id, path))
            if found is None:
                raise Violation("nothing lost, nothing added", f"the run of {path}")
            self.run(found, child)

    def _check_rows(self, rows: Mapping[str, StepDefinition], expected: Expected) -> None:
        if rows.keys() != expected.rows.keys():
            differing = sorted(rows.keys() ^ expected.rows.keys())
            raise Violation("as without faults: steps", f"{differing}")
        for path, wanted in expected.rows.items():
            row = rows[path]
            if _STATES.get(row.state) is not wanted.status:
                raise Violation(
                    "as without faults: states", f"{path} is {row.state}, not {wanted.status}"
                )
            _check_values(row, wanted)
            _check_counters(row)

    def _check_end(self, run: Run, expected: Expected) -> None:
        complete = expected.status is Status.COMPLETE
        if run.state != (RunState.COMPLETED if complete else RunState.FAILED):
            raise Violation("as without faults: end", f"{run.id} is {run.state}: {run.error}")
        if complete and run.outputs != expected.outputs:
            raise Violation("as without faults: outputs", f"{run.outputs}, not {expected.outputs}")
        if expected.error is not None and _brief(run.error) != _brief(expected.error):
            raise Violation("as without faults: error", f"{run.error}, not {expected.error}")

    def _check_work(
        self, id: WorkflowId, rows: Mapping[str, StepDefinition], expected: Expected
    ) -> None:
        """All work was done, none that was not wanted, and every result was taken in once."""
        done = {path for run, path in self._store.effects if run == id}
        wanted = {path for path in expected.events if rows[path].facet_name in EVENTS}
        if done != wanted:
            raise Violation("work that is wanted is done", f"{sorted(done ^ wanted)}")
        for path in expected.events:
            answered = "answered" in rows[path].frame
            if self._store.taken[id, path] != answered:
                raise Violation("a result is used once", path)
            if expected.rows[path].status is Status.COMPLETE and not answered:
                caught = rows[path].frame.get("caught")
                if not caught:
                    raise Violation("a result is used once", f"{path} has none")


def _check_values(row: StepDefinition, wanted: Row) -> None:
    same = (row.params, row.returns) == (wanted.params, wanted.returns)
    if wanted.status is Status.COMPLETE and not same:
        raise Violation(
            "as without faults: values",
            f"{row.path} has {row.params} and {row.returns}, "
            f"not {wanted.params} and {wanted.returns}",
        )
    if wanted.status is Status.FAILED and _brief(row.error) != _brief(wanted.error):
        raise Violation("as without faults: error", f"{row.path}: {row.error}, not {wanted.error}")


def _brief(error: Mapping[str, Json] | None) -> tuple[Json, Json]:
    return (None, None) if error is None else (error.get("type"), error.get("step"))


def _check_counters(row: StepDefinition) -> None:
    """A step that came to its own end waits for nothing."""
    if row.path == ROOT and (count(row, "open") or row.frame.get("more")):
        raise Violation("counters end at 0", f"{row.path}: {row.frame}")
    if row.state == StepState.STATEMENT_SKIPPED:
        return
    if count(row, "left") or count(row, "needs") or row.frame.get("waits"):
        raise Violation("counters end at 0", f"{row.path}: {row.frame}")


def _check_kernel(store: FlowStore, judged: set[WorkflowId]) -> None:
    kernel = store.kernel
    tasks = kernel.find_tasks(limit=_ALL)
    flows = {WorkflowId(task.id) for task in tasks if task.kind == "flow"}
    if flows != judged or store.ended != judged:
        raise Violation("nothing lost, nothing added", f"runs {sorted(flows ^ judged)}")
    for task in tasks:
        if task.state is not State.CLOSED:
            raise Violation("ended runs leave nothing open", f"{task.name} is {task.state}")
    for run in sorted(flows):
        for call in kernel.calls_of(TaskId(run)):
            if call.status is CallStatus.OPEN or not call.applied:
                raise Violation("every answer is taken", f"{call.key} is {call.status}")
    wrong = check(kernel)
    if wrong:
        raise Violation(f"invariant {wrong[0].partition(':')[0]}", "; ".join(wrong))
