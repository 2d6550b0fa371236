"""What a run came from, what came from it, and what came too late."""

from __future__ import annotations

from afl.runtime.entities import Run
from afl.runtime.run_search import RunFilter
from afl.runtime.step import WorkflowId
from afl.server.access import Caller
from afl.server.backend import Backend
from afl.server.models.runs import Lineage, Superseded
from afl.server.run_views.lines import run_lines

#: How many forks, and how many called runs, are told of.
_MOST = 100


def lineage_of(backend: Backend, caller: Caller, run: Run) -> Lineage:
    """The runs around a run, those that the caller may see."""
    persistence = backend.services.persistence
    id_ = WorkflowId(run.id)
    origin = None if run.fork is None else run.fork.run
    before = persistence.get_runs([each for each in (run.parent, origin) if each is not None])
    children = persistence.search_runs(RunFilter(parent=id_), limit=_MOST)
    forks = persistence.forks_of(id_, limit=_MOST)
    every = {each.id: each for each in (*before.values(), *children, *forks)}
    seen = [each for each in every.values() if caller.sees(each.tenant)]
    lines = {line.id: line for line in run_lines(backend, seen)}
    return Lineage(
        parent=None if run.parent is None else lines.get(run.parent),
        origin=None if origin is None else lines.get(origin),
        forks=[lines[each.id] for each in forks if each.id in lines],
        children=[lines[each.id] for each in children if each.id in lines],
    )


def superseded_of(backend: Backend, run: Run) -> list[Superseded]:
    """Results that came when somebody else had been given the work."""
    persistence = backend.services.persistence
    return [
        Superseded(
            step=each.path,
            worker=each.worker,
            outcome=each.status.value,
            at=each.noted_at or persistence.now(),
            result=each.body,
        )
        for each in backend.client.operations.superseded(run.id)
    ]
