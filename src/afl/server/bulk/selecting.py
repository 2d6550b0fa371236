"""Which runs a bulk action is done to: those that fit its form, the newest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from afl.runtime.run_search import RunFilter
from afl.runtime.states import RunState
from afl.runtime.step import WorkflowId
from afl.server.access import EVERY_TENANT
from afl.server.backend import Backend
from afl.server.models.bulk import BulkForm

#: How far runs are counted before an action.
COUNTED = 10_000
_PAGE = 200
#: The states in which an action changes something. A run does not come back into one of them by
#: the action itself; so they can be gone through one after the other.
_STATES: dict[str, tuple[str, ...]] = {
    "cancel": (RunState.CREATED, RunState.RUNNING, RunState.PAUSED),
    "pause": (RunState.CREATED, RunState.RUNNING),
    "resume": (RunState.PAUSED,),
    "retry": (RunState.FAILED, RunState.CANCELED),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job is: at a run, in one of the rounds that it makes."""

    round: int
    run: str

    @property
    def text(self) -> str:
        return f"{self.round}:{self.run}"

    @classmethod
    def of(cls, text: str) -> Place:
        round_, _, run = text.partition(":")
        return cls(int(round_), run)


@dataclass(frozen=True, slots=True)
class Selection:
    """The runs of a form, for one tenant."""

    backend: Backend
    form: BulkForm
    tenant: str

    def count(self) -> tuple[int, bool]:
        """How many runs there are, and whether these are all."""
        if self.form.runs is not None:
            return len(set(self.form.runs)), True
        persistence = self.backend.services.persistence
        counts = [
            count
            for each in self._filters()
            for count in persistence.count_runs(each, COUNTED).values()
        ]
        return sum(counts), all(count < COUNTED for count in counts)

    def places(self, newest: str, after: Place | None = None) -> Iterator[Place]:
        """The runs up to the newest one, from after a place."""
        if self.form.runs is not None:
            for run in sorted(set(self.form.runs), reverse=True):
                if after is None or run < after.run:
                    yield Place(0, run)
            return
        first = 0 if after is None else after.round
        for round_, wanted in enumerate(self._filters()):
            if round_ >= first:
                begin = after.run if after is not None and round_ == first else None
                for run in self._runs(wanted, begin):
                    if run <= newest:
                        yield Place(round_, run)

    def _runs(self, wanted: RunFilter, before: str | None) -> Iterator[str]:
        start = None if before is None else WorkflowId(before)
        search = self.backend.services.persistence.search_runs
        while page := search(wanted, before=start, limit=_PAGE):
            yield from (run.id for run in page)
            start = page[-1].id

    def _filters(self) -> list[RunFilter]:
        form = self.form
        changed = _STATES.get(form.verb)
        states: tuple[str | None, ...] = (form.state,) if changed is None else changed
        if form.state is not None and changed is not None:
            states = tuple(each for each in changed if each == form.state)
        return [
            RunFilter(
                state=state,
                workflow=form.workflow,
                labels=form.labels,
                text=form.text,
                since=form.since,
                until=form.until,
                # what was called is retried by its caller
                top_only=form.top_only or form.verb == "retry",
                tenant=None if self.tenant == EVERY_TENANT else self.tenant,
            )
            for state in states
        ]
