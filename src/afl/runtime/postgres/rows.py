"""Rows to values, and values to parameters. Column lists and readers are halves of one thing."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from afl.kernel.errors import BadRequest
from afl.kernel.model import Json
from afl.kernel.postgres.packing import array
from afl.kernel.postgres.rows import utc
from afl.runtime.entities import Fork, Run
from afl.runtime.persistence import IterationChanges
from afl.runtime.states import RunState
from afl.runtime.step import StepDefinition, WorkflowId

RUN_COLUMNS = """
    r.id::text, r.program, r.workflow, r.inputs, r.state, r.outputs, r.error, r.labels, r.key,
    r.priority, r.tenant, r.parent::text, r.parent_path, r.fork, r.pause_requested, r.created_at,
    r.finished_at
""".strip()
STEP_COLUMNS = """
    s.run::text, s.path, s.object_type, s.statement_id, s.facet_name, s.state, s.params, s.returns,
    s.error, s.skipped_because, s.yields_to, s.frame
""".strip()
#: As many nulls as a step has columns.
NO_STEP = ", ".join(["null"] * 12)

#: One encoder for all: `json.dumps` would make one for each value.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode

#: In place of parameters that stay as they are. Parameters are a map, never a text.
_SAME = '"="'

_NO_STEPS = dict.fromkeys(
    (
        "runs",
        "paths",
        "types",
        "statements",
        "facets",
        "states",
        "params",
        "returns",
        "errors",
        "because",
        "yields_to",
        "frames",
    )
)
_NO_WAITS = dict.fromkeys(("wait_runs", "wait_on", "wait_blocks"))
_NO_LOGS = dict.fromkeys(("log_runs", "log_paths", "log_lines"))
_NO_AWAITS = dict.fromkeys(("await_runs", "await_calls", "await_names", "await_keys"))


def run_of(row: Sequence[Any]) -> Run:
    fork, pause_requested, created_at, finished_at = row[13:]
    values: tuple[Any, ...] = (
        *row[:13],
        None if fork is None else Fork(fork["run"], tuple(fork["redo"]), fork["overrides"]),
        pause_requested,
        utc(created_at),
        None if finished_at is None else utc(finished_at),
    )
    return Run(*values)


def step_of(row: Sequence[Any]) -> StepDefinition:
    run, path, type_, statement, facet, state, params, returns, error, because, to, frame = row
    return StepDefinition(
        run,
        path,
        type_,
        statement,
        facet,
        state,
        {} if params is None else params,
        {} if returns is None else returns,
        error,
        because,
        to,
        {} if frame is None else frame,
    )


def pack_run(run: Run) -> dict[str, str | int | None]:
    """The parameters of `write_run`. The run is one that `run_in` has let pass."""
    fork = run.fork
    return {
        "id": run.id,
        "program": run.program,
        "workflow": run.workflow,
        "inputs": dumps(run.inputs),
        "state": run.state,
        "outputs": dumps_or_none(run.outputs),
        "error": dumps_or_none(run.error),
        "labels": dumps(run.labels),
        "key": run.key,
        "priority": run.priority,
        "tenant": run.tenant,
        "parent": run.parent,
        "parent_path": run.parent_path,
        "fork": None
        if fork is None
        else dumps({"run": fork.run, "redo": list(fork.redo), "overrides": fork.overrides}),
        "fork_run": None if fork is None else fork.run,
        "pause_requested": run.pause_requested,
        "ended": RunState.is_terminal(run.state),
    }


def pack_changes(
    changes: Iterable[tuple[WorkflowId, IterationChanges]],
) -> dict[str, str | int | None]:
    """The parameters of `write_changes`. Of a step that is named twice, the last counts."""
    steps: dict[tuple[str, str], StepDefinition] = {}
    same_params: set[tuple[str, str]] = set()
    waits: list[tuple[str, str, str]] = []
    logs: list[tuple[str, str, str]] = []
    awaits: list[tuple[str, str, str, str]] = []
    for run, each in changes:
        for step in each.created_steps:
            steps[run, step.path] = step
        for step in each.updated_steps:
            steps[run, step.path] = step
        same_params.update((run, path) for path in each.same_params)
        waits += [(run, wait.on, wait.block) for wait in each.waits]
        logs += [(run, line.path, dumps(line.values)) for line in each.logs]
        awaits += [(run, event.call_key, event.name, event.key) for event in each.awaits]
    return {
        **(_pack_steps(steps, same_params) if steps else _NO_STEPS),
        **(_pack(_NO_WAITS, waits) if waits else _NO_WAITS),
        **(_pack(_NO_LOGS, logs) if logs else _NO_LOGS),
        **(_pack(_NO_AWAITS, awaits) if awaits else _NO_AWAITS),
        "distinct": len({(run, step.statement_id) for (run, _), step in steps.items()})
        == len(steps),
    }


def _pack_steps(
    steps: Mapping[tuple[str, str], StepDefinition], same_params: Collection[tuple[str, str]]
) -> dict[str, str]:
    rows = [
        (
            run,
            path,
            step.object_type,
            step.statement_id,
            step.facet_name,
            step.state,
            _SAME if (run, path) in same_params else dumps(step.params) if step.params else None,
            dumps(step.returns) if step.returns else None,
            None if step.error is None else dumps(step.error),
            step.skipped_because,
            step.yields_to,
            dumps(step.frame) if step.frame else None,
        )
        for (run, path), step in steps.items()
    ]
    return _pack(_NO_STEPS, rows)


def _pack(names: Iterable[str], rows: Sequence[tuple[str | None, ...]]) -> dict[str, str]:
    """Rows as arrays, one for each column."""
    return dict(zip(names, map(array, zip(*rows, strict=True)), strict=True))


def dumps(value: object) -> str:
    """JSON text of a value."""
    try:
        return _encode(value)
    except (TypeError, ValueError) as error:
        raise BadRequest(f"JSON cannot express this: {error}") from error


def dumps_or_none(value: Mapping[str, Json] | None) -> str | None:
    """JSON text of a map; null is stored as nothing."""
    return None if value is None else dumps(value)
