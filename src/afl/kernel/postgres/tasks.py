"""The transactions of `port.TaskQueue`, apart from the sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from psycopg import Cursor

from afl.kernel.errors import BadRequest
from afl.kernel.model import (
    CallId,
    CallStatus,
    Claim,
    ClaimRequest,
    Commit,
    Committed,
    Json,
    Renewal,
    Stopped,
    Task,
    TaskId,
    TaskSpec,
    WorkerId,
)
from afl.kernel.port import Writes
from afl.kernel.postgres.core import Core, known_call, known_task
from afl.kernel.postgres.database import PostgresTransaction, Row
from afl.kernel.postgres.packing import array, json_text, pack_commits, pack_eager, pack_specs
from afl.kernel.postgres.rows import claim_of, fences_of, is_id, task_of, utc
from afl.kernel.postgres.statements import SQL
from afl.kernel.requests import check_commit, check_reply, check_spec

_ENQUEUE, _CLAIM, _COMMIT = SQL["enqueue"], SQL["claim"], SQL["commit"]


class PostgresTasks(Core):
    """See `port.TaskQueue` for what each method promises."""

    def enqueue(self, specs: Sequence[TaskSpec], writes: Writes | None = None) -> list[Task]:
        for spec in specs:
            check_spec(spec)
        places, distinct = _distinct(specs)
        parameters = pack_specs(distinct, self._ids) if distinct else None

        def work(cursor: Cursor[Row]) -> list[Row]:
            rows = [] if parameters is None else cursor.execute(_ENQUEUE, parameters).fetchall()
            if writes is not None and not (rows and all(row[0] for row in rows)):
                writes(PostgresTransaction(cursor))
            return rows

        rows = self._database.run(work, transaction=writes is not None)
        tasks = [task_of(row, 1) for row in rows]
        return [tasks[place] for place in places]

    def claim(self, request: ClaimRequest) -> list[Claim]:
        rows = self._database.rows(_CLAIM, pack_eager(request))
        return [claim_of(task_of(row, 1), row[0]) for row in rows]

    def renew(self, worker: WorkerId, held: Sequence[int] = ()) -> Renewal:
        row = self._row("renew", {"worker": worker, "held": array(held)})
        assert row is not None
        return Renewal(utc(row[0]), fences_of(row[1]), fences_of(row[2]))

    def commit(
        self,
        commits: Sequence[Commit],
        *,
        writes: Writes | None = None,
        eager: ClaimRequest | None = None,
    ) -> list[Committed]:
        for commit in commits:
            check_commit(commit)
            if not all(map(is_id, commit.applied)):
                raise BadRequest("`applied` names a call that the task never made")
        if not commits:
            return self._only_writes(writes)
        call_ids = [CallId(self._ids.new_id()) for commit in commits for _ in commit.calls]
        parameters = pack_commits(commits, call_ids, self._ids, eager)

        def work(cursor: Cursor[Row]) -> list[Row]:
            rows = cursor.execute(_COMMIT, parameters).fetchall()
            if writes is not None and not all(repeated for _, repeated, *_ in rows[: len(commits)]):
                writes(PostgresTransaction(cursor))
            return rows

        rows = self._database.run(work, transaction=writes is not None)
        return _committed(commits, call_ids, rows)

    def _only_writes(self, writes: Writes | None) -> list[Committed]:
        if writes is not None:
            self._database.run(lambda cursor: writes(PostgresTransaction(cursor)), transaction=True)
        return []

    def reply(self, call: CallId, status: CallStatus, body: Json = None) -> bool:
        check_reply(status)
        parameters = {
            "call": known_call(call),
            "status": status.value,
            "reply": json_text(body, "the answer"),
        }
        row = self._row("reply", parameters)
        return row is not None and bool(row[0])

    def stop(self, task: TaskId, *, force: bool = False, error: Json = None) -> Stopped:
        parameters = {
            "task": known_task(task),
            "force": force,
            "error": json_text(error, "the error"),
        }
        row = self._row("stop", parameters)
        assert row is not None
        return Stopped(row[0])


def _distinct(specs: Sequence[TaskSpec]) -> tuple[list[int], list[TaskSpec]]:
    """The specs without repeated idems, and where in them each spec has gone."""
    places: list[int] = []
    distinct: list[TaskSpec] = []
    seen: dict[tuple[str, str], int] = {}
    for spec in specs:
        place = None if spec.idem is None else seen.get((spec.tenant, spec.idem))
        if place is None:
            place = len(distinct)
            distinct.append(spec)
            if spec.idem is not None:
                seen[spec.tenant, spec.idem] = place
        places.append(place)
    return places, distinct


def _committed(
    commits: Sequence[Commit], call_ids: Sequence[CallId], rows: Sequence[Row]
) -> list[Committed]:
    """The answers: a row for each commit in their order, then rows for eager callees."""
    answer: list[Committed] = []
    new_ids = iter(call_ids)
    for at, _repeated, eager, known, replies, *task in rows:
        if eager:
            claim = claim_of(task_of(task), replies)
            before = answer[at - 1]
            answer[at - 1] = replace(before, eager=(*before.eager, claim))
        else:
            new = {call.key: next(new_ids) for call in commits[at - 1].calls}
            answer.append(Committed(task_of(task), new if known is None else known))
    return answer
