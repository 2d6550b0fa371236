"""How a run has ended: its outputs, or the step that failed with its line, and what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from afl.cli import exit_codes
from afl.cli.terminal import Terminal
from afl.ir.model import SourceSpan
from afl.kernel.model import Json, TaskId
from afl.runtime.entities import Run
from afl.runtime.operations import Operations
from afl.runtime.states import RunState, StepState
from afl.runtime.step import StepDefinition
from afl.runtime.views import run_json

_CODES = {
    RunState.COMPLETED: exit_codes.OK,
    RunState.FAILED: exit_codes.RUN_FAILED,
    RunState.CANCELED: exit_codes.RUN_CANCELED,
}
_MAX_FAILURES = 5
_MAX_SKIPPED = 10
_MAX_DEPTH = 20


def exit_code(run: Run) -> int:
    """How a command ends that waited for a run."""
    return _CODES.get(run.state, exit_codes.NOT_ENDED)


@dataclass(frozen=True, slots=True)
class Failure:
    """A step that failed by itself, not because another one did."""

    run: str
    path: str
    type: str
    message: str
    place: SourceSpan | None

    def as_json(self) -> dict[str, Json]:
        place = self.place
        return {
            "run": self.run,
            "step": self.path,
            "type": self.type,
            "message": self.message,
            "file": None if place is None else place.file,
            "line": None if place is None else place.line,
            "column": None if place is None else place.column,
        }


@dataclass(frozen=True, slots=True)
class Ending:
    """A run with what went wrong in it."""

    run: Run
    failures: tuple[Failure, ...] = ()
    #: paths of steps that never ran, each with the failed step it needed
    skipped: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Json]:
        return {
            "version": 1,
            "run": run_json(self.run),
            "failures": [failure.as_json() for failure in self.failures],
            "skipped": dict(self.skipped),
        }


def ending_of(operations: Operations, run: Run) -> Ending:
    """What became of a run."""
    if run.state != RunState.FAILED:
        return Ending(run)
    skipped = operations.persistence.get_steps_by_state(
        run.id, StepState.STATEMENT_SKIPPED, limit=1000
    )
    return Ending(
        run,
        tuple(_failures(operations, run, _MAX_DEPTH)),
        {row.path: row.skipped_because or "" for row in skipped if row.facet_name},
    )


def _failures(operations: Operations, run: Run, depth: int) -> Iterator[Failure]:
    rows = operations.persistence.get_steps_by_state(run.id, StepState.STATEMENT_ERROR, limit=1000)
    own = [row for row in rows if row.error is not None and row.error.get("step") == row.path]
    if not own and run.error is not None:
        error = run.error
        yield Failure(run.id, "", str(error.get("type")), str(error.get("message")), None)
    for row in own:
        child = _child(operations, row)
        if child is not None and child.state == RunState.FAILED and depth:
            yield from _failures(operations, child, depth - 1)
        else:
            yield _failure(operations, run, row)


def _child(operations: Operations, row: StepDefinition) -> Run | None:
    """The run that a step has called."""
    call = operations.persistence.kernel.find_call(TaskId(row.workflow_id), row.path)
    if call is None or call.callee is None:
        return None
    return operations.persistence.get_run(type(row.workflow_id)(call.callee))


def _failure(operations: Operations, run: Run, row: StepDefinition) -> Failure:
    error = row.error or {}
    program = operations.evaluator.plans.get(run.program).program
    return Failure(
        run.id,
        row.path,
        str(error.get("type")),
        str(error.get("message")),
        program.spans.get(row.statement_id),
    )


def say_ending(ending: Ending, terminal: Terminal, *, kept: bool = True) -> None:
    """Tell the user how a run ended. `kept` says whether the store outlives this command."""
    run = ending.run
    if run.state == RunState.CANCELED:
        error = run.error or {}
        terminal.error(f"{run.workflow} was canceled: {error.get('message')}")
        if kept:
            terminal.help(f"`afl runs rerun {run.id}` starts it afresh")
        return
    if run.state != RunState.FAILED:
        return
    for failure in ending.failures[:_MAX_FAILURES]:
        _say_failure(run, failure, terminal, with_source=not kept)
    left = len(ending.failures) - _MAX_FAILURES
    if left > 0:
        terminal.say(f"and {left} more")
    _say_skipped(ending.skipped, terminal)
    if kept:
        terminal.help(f"`afl runs retry {run.id}` does again what failed, and keeps what is done")


def _say_failure(run: Run, failure: Failure, terminal: Terminal, *, with_source: bool) -> None:
    at = f" at step {failure.path}" if failure.path else ""
    within = f" of run {failure.run}" if failure.run != run.id else ""
    terminal.error(f"{run.workflow} failed{at}{within}: {failure.type}: {failure.message}")
    place = failure.place
    if place is None:
        return
    terminal.say(f" --> {place.file}:{place.line}:{place.column}")
    # what was deployed may not be what the file says by now
    text = _line(place) if with_source else None
    if text is not None:
        terminal.say(f"{place.line:>4} | {text}")


def _say_skipped(skipped: Mapping[str, str], terminal: Terminal) -> None:
    for path, because in list(skipped.items())[:_MAX_SKIPPED]:
        terminal.say(f"skipped {path}: it needs {because}, which failed")
    if len(skipped) > _MAX_SKIPPED:
        terminal.say(f"skipped {len(skipped) - _MAX_SKIPPED} more")


def _line(place: SourceSpan) -> str | None:
    """The line of the source, if the source is there as a file."""
    if not os.path.isfile(place.file):
        return None
    try:
        with open(place.file, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return lines[place.line - 1] if place.line <= len(lines) else None
