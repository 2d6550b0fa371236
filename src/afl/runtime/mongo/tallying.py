"""How many steps runs have, by statement and state: one document for each statement of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from pymongo import UpdateOne

from afl.kernel.mongo.transaction import Operation
from afl.runtime.mongo.core import MongoCore, of_run
from afl.runtime.step import WorkflowId
from afl.runtime.tallies import Kind, Tally

#: A run, and what its steps are counted by but for their state.
_Place = tuple[str, str, str, str]


class MongoTallies(MongoCore):
    """The part of `persistence.StepWindows` that does not read steps."""

    def tally(self, run: WorkflowId) -> list[Tally]:
        return self.tallies([run]).get(run, [])

    def tallies(self, runs: Sequence[WorkflowId]) -> Mapping[WorkflowId, list[Tally]]:
        if not runs:
            return {}
        stretches = [{"_id": of_run(run)} for run in runs]
        found: dict[WorkflowId, list[Tally]] = {}
        for each in self._database.find("step_tally", {"$or": stretches}):
            place = each["statement_id"], each["facet_name"], each["object_type"]
            found.setdefault(each["run"], []).extend(
                Tally(*place, _state(field), steps)
                for field, steps in each["steps"].items()
                if steps
            )
        return {run: sorted(counted) for run, counted in found.items() if counted}


class TallyChanges:
    """By how much the tallies of runs change."""

    def __init__(self) -> None:
        self._counts: dict[_Place, Counter[str]] = defaultdict(Counter)

    def count(self, run: WorkflowId, was: Kind | None, is_now: Kind) -> None:
        """A step of this kind is written in the place of another one, or of none."""
        if was == is_now:
            return
        if was is not None:
            self._counts[run, *was[:3]][was[3]] -= 1
        self._counts[run, *is_now[:3]][is_now[3]] += 1

    def operations(self) -> list[Operation]:
        """A kind of step that there are none of any more keeps its zero."""
        made: list[Operation] = []
        for (run, *place), counts in self._counts.items():
            if change := {f"steps.{_field(state)}": by for state, by in counts.items() if by}:
                names = dict(zip(("statement_id", "facet_name", "object_type"), place, strict=True))
                # no name has this letter
                by_id = {"_id": f"{run}:" + "\0".join(place)}
                update = {"$inc": change, "$setOnInsert": {"run": run, **names}}
                made.append(UpdateOne(by_id, update, upsert=True))
        return made


def _field(state: str) -> str:
    """A state as the name of a field, which has no dots. No state has a slash."""
    return state.replace(".", "/")


def _state(field: str) -> str:
    return field.replace("/", ".")
