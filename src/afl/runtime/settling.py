"""Runs whose tasks the kernel has closed by itself, at a deadline, by a stop, after crashes or for
want of a caller: their rows end too."""

from __future__ import annotations

from collections.abc import Mapping

from afl.kernel.model import Json, Outcome, State, Task, TaskId
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.replies import split_mixins
from afl.runtime.states import RunState
from afl.runtime.step import WorkflowId

#: What rings on a doorbell when a run has ended.
ENDED = "afl.ended"
#: How many runs one look is about.
RUNS_PER_LOOK = 500

#: The state, outputs and error of a run that has ended.
End = tuple[str, Mapping[str, Json] | None, Mapping[str, Json] | None]


class Settler:
    """Goes round all runs that have not ended, a few at a time, and ends those that should be.

    Each look costs the same however many runs there are. Several processes may do this.
    """

    def __init__(self, persistence: PersistenceAPI) -> None:
        self._persistence = persistence
        self._after: WorkflowId | None = None

    def settle_runs(self, limit: int = RUNS_PER_LOOK) -> int:
        """Looks at the next runs. Tells how many it has ended."""
        found = self._persistence.stale_runs(self._after, limit)
        self._after = found.next
        return sum([settle_run(self._persistence, run) for run in found.runs])


def settle_run(persistence: PersistenceAPI, run: WorkflowId) -> bool:
    """Ends a run whose task is closed; tells whether it is."""
    task = persistence.kernel.get_task(TaskId(run))
    if task is None or task.state is not State.CLOSED:
        return False
    end = end_of(task)
    persistence.kernel.commit(
        (), writes=lambda transaction: persistence.finish_run(transaction, run, *end)
    )
    return True


def end_of(task: Task) -> End:
    """How a run has ended whose task was closed by somebody else than its evaluator."""
    error = task.error if isinstance(task.error, dict) else {}
    message = str(error.get("message") or task.error or "")
    match task.outcome:
        case Outcome.SUCCESS | Outcome.PARTIAL:
            outputs, _ = split_mixins(task.result if isinstance(task.result, dict) else {})
            return RunState.COMPLETED, outputs, None
        case Outcome.CANCELED:
            told = {"type": "Canceled", "message": message or "It was stopped.", **error}
            return RunState.CANCELED, None, told
        case Outcome.TIMEOUT:
            told = {"type": "Timeout", "message": "The run did not end before its deadline."}
            return RunState.FAILED, None, told
        case _:
            type_ = "Crashed" if error.get("code") == "crashed" else "Error"
            told = {"type": type_, "message": message or "The run was given up.", **error}
            return RunState.FAILED, None, told
