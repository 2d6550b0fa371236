"""Runs on their way into a store and out of it: copies that share no list and no map."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from afl.kernel.model import Json
from afl.kernel.requests import json_copy
from afl.runtime.entities import Fork, Run


def run_in(run: Run) -> Run:
    """A copy of a run to be stored. Refuses with `BadRequest` what could not be given back."""
    labels = map_in(run.labels, "the labels")
    return replace(
        copy_run(run, lambda value: map_in(value, "the run")),
        labels={key: str(value) for key, value in labels.items()},
    )


def map_in(value: Mapping[str, Json], where: str) -> dict[str, Json]:
    """A copy of a map to be stored. Refuses with `BadRequest` what could not be given back."""
    copy = json_copy(dict(value), where)
    assert isinstance(copy, dict)
    return copy


def copy_run(run: Run, copy: Callable[[Mapping[str, Json]], dict[str, Json]]) -> Run:
    """A copy of a run, whose maps are copied that way."""
    # not by replace, which takes twice the time: a run is read whenever it goes on
    return Run(
        run.id,
        run.program,
        run.workflow,
        copy(run.inputs),
        run.state,
        None if run.outputs is None else copy(run.outputs),
        None if run.error is None else copy(run.error),
        dict(run.labels),
        run.key,
        run.priority,
        run.tenant,
        run.parent,
        run.parent_path,
        None if run.fork is None else _copy_fork(run.fork, copy),
        run.pause_requested,
        run.created_at,
        run.finished_at,
    )


def _copy_fork(fork: Fork, copy: Callable[[Mapping[str, Json]], dict[str, Json]]) -> Fork:
    overrides = {path: copy(values) for path, values in fork.overrides.items()}
    return Fork(fork.run, tuple(fork.redo), overrides)
