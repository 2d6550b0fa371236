"""Runs in lists: a page of them costs the same few reads however many it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from afl.bridges.turn_stores import turn_store
from afl.runtime.entities import Run
from afl.runtime.run_search import RunFilter, state_word
from afl.runtime.schedule import SCHEDULE_LABEL
from afl.runtime.step import WorkflowId
from afl.server.access import EVERY_TENANT, Caller
from afl.server.backend import Backend
from afl.server.errors import BadForm
from afl.server.hooking import LABEL as HOOK_LABEL
from afl.server.models.runs import RunCounts, RunLine, RunWord, StateCount
from afl.server.run_views.words import one_line, progress_of

#: What is asked for with `parent` to get the runs that nobody called.
NOBODY = "none"
#: Labels that name what started a run, and what that is called.
_STARTED_BY = {SCHEDULE_LABEL: "schedule", HOOK_LABEL: "hook"}
#: How many runs of one state are counted at most.
_CAP = 10_000
_WORDS: tuple[RunWord, ...] = ("created", "running", "paused", "completed", "failed", "canceled")


def filter_of(
    caller: Caller,
    *,
    state: str | None = None,
    workflow: str | None = None,
    labels: Sequence[str] = (),
    text: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    parent: str | None = None,
) -> RunFilter:
    """The filter of a request, which shows its caller only what is theirs to see.

    Raises:
        BadForm: a label is not `name=value`, or a time has no zone.
    """
    for name, time in (("since", since), ("until", until)):
        if time is not None and time.tzinfo is None:
            raise BadForm(f"`{name}` needs a time zone, as in 2027-01-31T09:00:00Z.")
    return RunFilter(
        state=state,
        workflow=workflow or None,
        labels=dict(map(_label, labels)),
        text=text or None,
        since=since,
        until=until,
        parent=None if parent in (None, "", NOBODY) else WorkflowId(str(parent)),
        top_only=parent == NOBODY,
        tenant=None if caller.tenant == EVERY_TENANT else caller.tenant,
    )


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise BadForm(f"`{text}` is no label. Write `name=value`.")
    return name, value


def run_lines(backend: Backend, runs: Sequence[Run]) -> list[RunLine]:
    """Runs as lines of a list."""
    persistence = backend.services.persistence
    tallies = persistence.tallies([run.id for run in runs]) if runs else {}
    costs = _costs(backend, runs)
    return [
        RunLine(
            id=run.id,
            workflow=run.workflow,
            program=run.program,
            state=word_of_run(run),
            labels=dict(run.labels),
            key=run.key,
            priority=run.priority,
            tenant=run.tenant,
            parent=run.parent,
            parent_path=run.parent_path,
            forked_from=None if run.fork is None else run.fork.run,
            trigger=trigger_of(run),
            created_at=run.created_at or persistence.now(),
            finished_at=run.finished_at,
            progress=progress_of(tallies.get(run.id, [])),
            cost_usd=costs.get(run.id),
            error=one_line(run.error),
        )
        for run in runs
    ]


def run_line(backend: Backend, run: Run) -> RunLine:
    """A run as a line of a list."""
    (line,) = run_lines(backend, [run])
    return line


def _costs(backend: Backend, runs: Sequence[Run]) -> Mapping[str, float]:
    """What models have cost, by run. What a called run has cost is in the account of the run that
    everything began with."""
    by_tenant: dict[str, list[str]] = {}
    for run in runs:
        if run.parent is None:
            by_tenant.setdefault(run.tenant, []).append(run.id)
    store = turn_store(backend.services.persistence)
    return {
        each.key: float(each.usd)
        for tenant, ids in by_tenant.items()
        for each in store.usage("run", tenant=tenant, runs=ids, limit=len(ids))
    }


def trigger_of(run: Run) -> str:
    """What started a run."""
    if run.parent is not None:
        return f"run:{run.parent}"
    for label, what in _STARTED_BY.items():
        if label in run.labels:
            return f"{what}:{run.labels[label]}"
    return "submit"


def word_of_run(run: Run) -> RunWord:
    """The state of a run as people read it."""
    word = state_word(run)
    return next(each for each in _WORDS if each == word)


def counts_of(backend: Backend, wanted: RunFilter) -> RunCounts:
    """How many runs fit a filter, by state."""
    counts = backend.services.persistence.count_runs(wanted, _CAP)
    return RunCounts(
        states=[StateCount(state=word, count=counts.get(word, 0)) for word in _WORDS],
        total=sum(counts.values()),
        exact=all(count < _CAP for count in counts.values()),
    )
