"""Spans of runs and of their steps, told from their rows when the run has ended. One process at a
time does it, whichever: the ids follow from the rows, so a run that is told twice is the same."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode

from afl.app.tracing.ids import span_context
from afl.app.tracing.work import SCOPE
from afl.kernel.errors import StoreUnavailable
from afl.kernel.model import Json, TaskId
from afl.kernel.working.leading import Lead
from afl.runtime.entities import Run
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.states import RunState
from afl.runtime.step import ROOT, StepDefinition, parent_of
from afl.runtime.step_windows import StepTimes

_log = logging.getLogger("afl.tracing")
_LEAD = "afl.tracing"
_LED = timedelta(seconds=30)
_LOOK_SECONDS = 2.0
#: A run that ended a moment ago may become visible after one that ended later.
_LATE = timedelta(seconds=20)
_PAGE = 200
#: Of a larger run, the first steps are told; the run's span says how many were left out.
MOST_STEPS = 5_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that has ended, and what is told of it."""

    run: Run
    #: the run that all began with
    root: str
    steps: Sequence[StepDefinition]
    times: Mapping[str, StepTimes]
    left_out: int = 0


def spans_of(ended: Ended, resource: Resource) -> Iterator[ReadableSpan]:
    """The spans of a run and of its steps."""
    run, root = ended.run, ended.root
    caller = None
    if run.parent is not None:
        caller = span_context(root, run.parent, run.parent_path or "")
    attributes: dict[str, str | int] = {
        "afl.run": run.id,
        "afl.workflow": run.workflow,
        "afl.program": run.program,
        "afl.state": run.state,
        "afl.tenant": run.tenant,
        "afl.steps_left_out": ended.left_out,
        **{f"afl.label.{name}": text for name, text in run.labels.items()},
    }
    yield _span(
        f"run {run.workflow}",
        span_context(root, run.id),
        caller,
        (run.created_at, run.finished_at),
        attributes,
        _status(run.state == RunState.FAILED, run.error),
        resource,
    )
    known = {step.path for step in ended.steps}
    for step in ended.steps:
        times = ended.times.get(step.path)
        if step.path == ROOT or times is None:
            continue
        above = parent_of(step.path)
        parent = span_context(root, run.id, above if above in known else "")
        at = span_context(root, run.id, step.path)
        status = _status(step.error is not None, step.error)
        stretch = (times.created_at, times.ended_at or run.finished_at)
        name = step.name or step.path
        yield _span(name, at, parent, stretch, _attributes(step), status, resource)


def _attributes(step: StepDefinition) -> dict[str, str | int]:
    attributes: dict[str, str | int] = {
        "afl.run": step.workflow_id,
        "afl.step": step.path,
        "afl.facet": step.facet_name,
        "afl.state": step.state,
    }
    if step.skipped_because is not None:
        attributes["afl.skipped_because"] = step.skipped_because
    return attributes


def _span(
    name: str,
    context: SpanContext,
    parent: SpanContext | None,
    times: tuple[datetime | None, datetime | None],
    attributes: Mapping[str, str | int],
    status: Status,
    resource: Resource,
) -> ReadableSpan:
    start, end = (_nanoseconds(each) for each in times)
    return ReadableSpan(
        name,
        context=context,
        parent=parent,
        resource=resource,
        attributes=attributes,
        kind=SpanKind.INTERNAL,
        status=status,
        start_time=start,
        end_time=max(start, end),
        instrumentation_scope=InstrumentationScope(SCOPE),
    )


def _status(failed: bool, error: Mapping[str, Json] | None) -> Status:
    if not failed:
        return Status(StatusCode.OK)
    told = error or {}
    return Status(StatusCode.ERROR, f"{told.get('type')}: {told.get('message')}")


def _nanoseconds(moment: datetime | None) -> int:
    return 0 if moment is None else (moment - _EPOCH) // timedelta(microseconds=1) * 1000


class FinishedRuns:
    """Tells of runs that end, from `start` to `stop`, in a thread of its own."""

    def __init__(
        self, persistence: PersistenceAPI, spans: SpanProcessor, resource: Resource, owner: str
    ) -> None:
        self._persistence = persistence
        self._spans = spans
        self._resource = resource
        self._lead = Lead(persistence.kernel, _LEAD, owner, _LED)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="afl-tracing", daemon=True)
        self._since = persistence.now()
        #: those of the last moments that were told
        self._told: dict[str, datetime] = {}

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Tells of what has ended so far, and ends."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        over = False
        while not over:
            over = self._stopped.wait(_LOOK_SECONDS)
            try:
                if self._lead.take():
                    self.tell()
            except StoreUnavailable:
                continue
            except Exception:  # noqa: BLE001 - work must not stop because it cannot be traced
                _log.warning("runs that have ended could not be traced", exc_info=True)
        self._lead.release()

    def tell(self) -> None:
        """Tells of the runs that have ended since it was last asked."""
        while True:
            found = self._persistence.ended_runs(self._since, _PAGE)
            fresh = [run for run in found if run.id not in self._told]
            for run in fresh:
                self._tell_run(run)
                assert run.finished_at is not None
                self._told[run.id] = run.finished_at
            if len(found) < _PAGE:
                break
            last = found[-1].finished_at
            assert last is not None
            if last == self._since and not fresh:
                break
            self._since = last
        self._since = max(self._since, self._persistence.now() - _LATE)
        self._told = {run: at for run, at in self._told.items() if at >= self._since}

    def _tell_run(self, run: Run) -> None:
        task = self._persistence.kernel.get_task(TaskId(run.id))
        root = run.id if task is None else task.run
        steps = self._persistence.get_steps_by_workflow(run.id, limit=MOST_STEPS)
        left_out = 0
        if len(steps) == MOST_STEPS:
            left_out = sum(self._persistence.count_steps(run.id).values()) - MOST_STEPS
        times = self._persistence.step_times(run.id, [step.path for step in steps])
        for span in spans_of(Ended(run, root, steps, times, left_out), self._resource):
            self._spans.on_end(span)
