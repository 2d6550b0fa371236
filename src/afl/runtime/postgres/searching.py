"""Lists of runs: by index, however many runs there are."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from afl.kernel.postgres.database import Row
from afl.kernel.postgres.rows import is_id, utc
from afl.runtime.entities import Run
from afl.runtime.postgres.core import PostgresCore
from afl.runtime.postgres.rows import dumps, run_of
from afl.runtime.postgres.statements import SQL
from afl.runtime.run_search import STATE_WORDS, RunFilter
from afl.runtime.states import RunState
from afl.runtime.step import WorkflowId

#: A text is looked for in the keys and errors of so many of the newest runs that fit otherwise; and
#: labels, before their index is asked.
_AMONG = 5_000
#: So many times that, if there are enough of them among those to expect the rest.
_MORE = 8
#: How far the time in an id may be from the time at which its run was put in place.
_ID_SKEW = timedelta(hours=1)
_FIRST_ID = "00000000-0000-0000-0000-000000000000"
_LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"
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
            rows = self._ask("search_newest", {**newest, "among": _MORE * _AMONG})
        return rows if len(rows) == limit else self._ask("search_all", parameters)

    def count_runs(self, filter: RunFilter, cap: int = 10_000) -> Mapping[str, int]:
        if not _can_fit(filter):
            return {}
        conditions = {**self._conditions(filter), "before": None, "limit": cap}
        statement = "count_runs"
        if filter.text:
            statement = "count_named"
            # once for all states: this is what costs
            conditions["found"] = [row[0] for row in self._ask("look_for_text", conditions)]
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
        if not ends or not all(_tells_time(id_, utc(made)) for id_, made in ends):
            return {"first": None, "last": None}
        return {
            "first": None if since is None else _id_at(since - _ID_SKEW, _FIRST_ID),
            "last": None if until is None else _id_at(until + _ID_SKEW, _LAST_ID),
        }

    def _ask(self, statement: str, parameters: Mapping[str, object]) -> list[Row]:
        # not prepared: which index serves depends on what is asked
        return self._kernel.database.run(
            lambda cursor: cursor.execute(SQL[statement], parameters, prepare=False).fetchall()
        )


def _can_fit(filter: RunFilter) -> bool:
    """Whether there can be such a run at all."""
    return filter.parent is None or is_id(filter.parent)


def _state(word: str | None) -> dict[str, object]:
    if word == RunState.PAUSED:
        return {"state": None, "paused": True}
    lives = word in (RunState.CREATED, RunState.RUNNING)
    return {"state": word, "paused": False if lives else None}


def _tells_time(id_: str, made: datetime) -> bool:
    """Whether an id begins with about the time at which its run was made."""
    return _id_at(made - _ID_SKEW, _FIRST_ID) <= id_ <= _id_at(made + _ID_SKEW, _LAST_ID)


def _id_at(time: datetime, rest: str) -> str:
    """The first or the last id of a millisecond."""
    milliseconds = f"{max(0, int(time.timestamp() * 1000)):012x}"
    return f"{milliseconds[:8]}-{milliseconds[8:]}{rest[13:]}"


def _ids_from(text: str | None) -> tuple[str, str]:
    """The first and the last id that begin with a text; the other way round if none can."""
    begin = "" if text is None else text.lower()
    fits = all(
        here in _HEX if there != "-" else here == "-"
        for here, there in zip(begin, _FIRST_ID, strict=False)
    )
    if not begin or not fits or len(begin) > len(_FIRST_ID):
        return _LAST_ID, _FIRST_ID
    return begin + _FIRST_ID[len(begin) :], begin + _LAST_ID[len(begin) :]
