"""Runs and steps to documents and back. Writers and readers are halves of one thing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from afl.kernel.model import Json
from afl.kernel.mongo.transaction import Document
from afl.kernel.mongo.values import MAX_INLINE, Packed, Values, to_micros, to_time
from afl.runtime.entities import Fork, Run
from afl.runtime.mongo.core import packed, unpacked_map
from afl.runtime.run_search import state_word
from afl.runtime.states import RunState
from afl.runtime.step import ROOT, StepDefinition, WorkflowId, parent_of, step_id

#: What is read of a step to make it.
STEP_FIELDS = {"created_at": 0, "changed_at": 0, "ended_at": 0, "message": 0, "parent": 0}


def run_document(values: Values, run: Run, now: datetime) -> Document:
    """A new run. It is one that `run_in` has let pass."""
    ended = RunState.is_terminal(run.state)
    fork = run.fork
    return {
        "_id": run.id,
        "program": run.program,
        "workflow": run.workflow,
        "inputs": packed(values, run.inputs),
        "state": run.state,
        "word": state_word(run),
        "is_open": None if ended else True,
        "outputs": packed(values, run.outputs),
        **error_fields(values, run.error),
        "labels": [label(*each) for each in run.labels.items()] or None,
        "key": run.key,
        "small_key": None if run.key is None else run.key.lower(),
        "has_key": None if run.key is None else True,
        "priority": run.priority,
        "tenant": run.tenant,
        "parent": run.parent,
        "parent_path": run.parent_path,
        "fork": None if fork is None else packed(values, _fork_json(fork)),
        "fork_run": None if fork is None else fork.run,
        "pause_requested": run.pause_requested,
        "created_at": to_micros(now),
        "finished_at": to_micros(now) if ended else None,
    }


def error_fields(values: Values, error: Mapping[str, Json] | None) -> Document:
    """The fields of a run or a step that say what failed: the message also in small letters."""
    return {
        "error": None if error is None else packed(values, error),
        "has_error": None if error is None else True,
        "message": None if error is None else _small_message(error),
    }


def run_of(values: Values, found: Document) -> Run:
    labels = dict(unlabel(each) for each in found.get("labels", ()))
    fork: Packed = found.get("fork")
    return Run(
        found["_id"],
        found["program"],
        found["workflow"],
        unpacked_map(values, found["inputs"]),
        found["state"],
        _map_or_none(values, found.get("outputs")),
        _map_or_none(values, found.get("error")),
        labels,
        found.get("key"),
        found["priority"],
        found["tenant"],
        found.get("parent"),
        found.get("parent_path"),
        None if fork is None else _fork_of(values.unpack(fork)),
        found["pause_requested"],
        to_time(found["created_at"]),
        to_time(found.get("finished_at")),
    )


def label(name: str, value: str) -> str:
    """A label as one text, by which it is found. No two labels have the same."""
    return f"{name.replace('%', '%25').replace('=', '%3D')}={value}"


def unlabel(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.replace("%3D", "=").replace("%25", "%"), value


def step_document(
    values: Values, run: WorkflowId, step: StepDefinition, *, is_same_params: bool
) -> Document:
    """A step, but for its times, and for its parameters if those are what they were."""
    given: Document = {}
    if not is_same_params:
        given["params"] = packed(values, step.params) if step.params else None
    return {
        "_id": step_id(run, step.path),
        "run": run,
        "path": step.path,
        "parent": None if step.path == ROOT else parent_of(step.path),
        "object_type": step.object_type,
        "statement_id": step.statement_id,
        "facet_name": step.facet_name,
        "state": step.state,
        **given,
        "returns": packed(values, step.returns) if step.returns else None,
        **error_fields(values, step.error),
        "skipped_because": step.skipped_because,
        "yields_to": step.yields_to,
        "frame": packed(values, step.frame) if step.frame else None,
    }


def step_of(values: Values, found: Document) -> StepDefinition:
    return StepDefinition(
        found["run"],
        found["path"],
        found["object_type"],
        found["statement_id"],
        found["facet_name"],
        found["state"],
        unpacked_map(values, found.get("params")),
        unpacked_map(values, found.get("returns")),
        _map_or_none(values, found.get("error")),
        found.get("skipped_because"),
        found.get("yields_to"),
        unpacked_map(values, found.get("frame")),
    )


def _map_or_none(values: Values, value: Packed) -> dict[str, Json] | None:
    return None if value is None else unpacked_map(values, value)


def _small_message(error: Mapping[str, Json]) -> str | None:
    """The message in small letters; of one that is too long for a document, the beginning."""
    message = error.get("message")
    return message[: MAX_INLINE // 4].lower() if isinstance(message, str) else None


def _fork_json(fork: Fork) -> Mapping[str, Any]:
    return {"run": fork.run, "redo": list(fork.redo), "overrides": fork.overrides}


def _fork_of(fork: Any) -> Fork:  # noqa: ANN401 - JSON that was written here
    return Fork(fork["run"], tuple(fork["redo"]), fork["overrides"])
