"""Lists of runs: by index, however many runs there are."""

from __future__ import annotations

from collections.abc import Mapping

from afl.kernel.postgres.database import Row
from afl.kernel.postgres.rows import is_id, utc
from afl.runtime.entities import Run
from afl.runtime.postgres.core import PostgresCore
from afl.runtime.postgres.rows import dumps, run_of
from afl.runtime.postgres.statements import SQL
from afl.runtime.run_ids import FIRST_ID, ID_SKEW, LAST_ID, first_id, last_id, tells_time
from afl.runtime.run_search import STATE_WORDS, RunFilter
from afl.runtime.states import RunState
from afl.runtime.step import WorkflowId

#: A text is looked for in the keys and errors of so many of the newest runs that fit otherwise; and
#: labels, before their index is asked.
_AMONG = 5_000
#: So many times that, if there are enough of them among those to expect the rest.
_MORE = 12
_HEX = frozenset("0123456789abcdef")


class PostgresRunSearch(PostgresCore):
    """See `persistence.RunSearch` for what each method promises."""

    def search_runs(
        self, filter: RunFilter, *, before: WorkflowId | None = None, limit: int = 100
    ) -> list[Run]:
        if not _can_fit(filter):
            return []
        parameters = {**self._conditions(filter), "before": before, "limit": limit}
        if filter.text:
            rows = self._ask("search_text", parameters)
        elif filter.labels:
            rows = self._search_labels(parameters, limit)
        else:
            rows = self._ask("search_runs", parameters)
        return [run_of(row) for row in rows]

    def _search_labels(self, parameters: Mapping[str, object], limit: int) -> list[Row]:
        """Labels that many runs have are found among the newest, those of few by their index. The
        server is not asked which of the two it is: it takes some that few have for common ones,
        and would look through all runs for them."""
        newest = {**parameters, "labels": None, "sought": parameters["labels"]}
        rows = self._ask("search_newest", newest)
        if len(rows) < limit <= _MORE * len(rows):
            # on from the last that was found
            rest = {"before": rows[-1][0], "limit": limit - len(rows), "among": _MORE * _AMONG}
            rows += self._ask("search_newest", {**newest, **rest})
        return rows if len(rows) == limit else self._ask("search_all", parameters)

    def count_runs(self, filter: RunFilter, cap: int = 10_000) -> Mapping[str, int]:
        if not _can_fit(filter):
            return {}
        conditions = {**self._conditions(filter), "before": None, "limit": cap}
        statement = "count_runs"
        if filter.text:
            statement = "count_named"
            # once for all states, so not up to the cap of one: this is what costs
            all_states = {**conditions, "limit": max(cap, _AMONG)}
            conditions["found"] = [row[0] for row in self._ask("look_for_text", all_states)]
        elif filter.labels and filter.state is None:
            # all states at once, which does if few have the labels
            together: dict[str, int] = dict(self._ask("count_together", conditions))
            if sum(together.values()) < cap:
                return together
        counts: dict[str, int] = {}
        for word in STATE_WORDS if filter.state is None else (filter.state,):
            ((count,),) = self._ask(statement, {**conditions, **_state(word)})
            if count:
                counts[word] = count
        return counts

    def _conditions(self, filter: RunFilter) -> dict[str, object]:
        first_id, last_id = _ids_from(filter.text)
        return {
            **_state(filter.state),
            "workflow": filter.workflow,
            "labels": dumps(filter.labels) if filter.labels else None,
            "text": filter.text or None,
            "first_id": first_id,
            "last_id": last_id,
            "since": filter.since,
            "until": filter.until,
            **self._stretch(filter),
            "parent": filter.parent,
            "top_only": filter.top_only,
            "tenant": filter.tenant,
            "among": _AMONG,
        }

    def _stretch(self, filter: RunFilter) -> dict[str, str | None]:
        """The ids that runs of a stretch of time can have, if ids tell the time here: the first and
        the last would show that they do not."""
        since, until = filter.since, filter.until
        ends = [] if since is until is None else self._ask("outermost_runs", {})
        if not ends or not all(tells_time(id_, utc(made)) for id_, made in ends):
            return {"first": None, "last": None}
        return {
            "first": None if since is None else first_id(since - ID_SKEW),
            "last": None if until is None else last_id(until + ID_SKEW),
        }

    def _ask(self, statement: str, parameters: Mapping[str, object]) -> list[Row]:
        # not prepared: which index serves depends on what is asked
        return self._kernel.database.rows(SQL[statement], parameters, prepare=False)


def _can_fit(filter: RunFilter) -> bool:
    """Whether there can be such a run at all."""
    return filter.parent is None or is_id(filter.parent)


def _state(word: str | None) -> dict[str, object]:
    if word == RunState.PAUSED:
        return {"state": None, "paused": True}
    lives = word in (RunState.CREATED, RunState.RUNNING)
    return {"state": word, "paused": False if lives else None}


def _ids_from(text: str | None) -> tuple[str, str]:
    """The first and the last id that begin with a text; the other way round if none can."""
    begin = "" if text is None else text.lower()
    fits = all(
        here in _HEX if there != "-" else here == "-"
        for here, there in zip(begin, FIRST_ID, strict=False)
    )
    if not begin or not fits or len(begin) > len(FIRST_ID):
        return LAST_ID, FIRST_ID
    return begin + FIRST_ID[len(begin) :], begin + LAST_ID[len(begin) :]
