"""The transactions of `port.TaskQueue`, apart from the sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from operator import attrgetter

from afl.base.ids import IdSource
from afl.kernel.errors import BadRequest
from afl.kernel.model import (
    CallId,
    CallStatus,
    Claim,
    ClaimRequest,
    Commit,
    Committed,
    Fence,
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
from afl.kernel.postgres.database import Database, NotPlain, PostgresTransaction, Row, Sent
from afl.kernel.postgres.packing import array, json_text, pack_commits, pack_request, pack_specs
from afl.kernel.postgres.plain import (
    Ended,
    Ending,
    Hands,
    alike,
    is_for_one,
    pack_ending,
    pack_endings,
)
from afl.kernel.postgres.rows import claim_of, claimed_row, fences_of, is_id, task_of, utc
from afl.kernel.postgres.statements import hot
from afl.kernel.postgres.stepping import HeldRows, Steps
from afl.kernel.requests import MAX_DURATION, check_commit, check_reply, check_spec

_ENQUEUE, _COMMIT = hot("enqueue"), hot("commit")
_ENQUEUE_PLAIN, _ENQUEUE_ONE = hot("enqueue_plain"), hot("enqueue_one")
_FINISH, _FINISH_ONE = hot("finish"), hot("finish_one")
_CLAIM, _TAKE_TASK, _STEP = hot("claim"), hot("take_task"), hot("step")
#: No task has this id.
_NOBODY = "00000000-0000-0000-0000-000000000000"


class PostgresTasks(Core):
    """See `port.TaskQueue` for what each method promises."""

    def __init__(self, database: Database, ids: IdSource) -> None:
        super().__init__(database, ids)
        self._hands = Hands()
        self._held = HeldRows()

    def enqueue(self, specs: Sequence[TaskSpec], writes: Writes | None = None) -> list[Task]:
        if specs and writes is None and (made := alike(specs, self._ids)) is not None:
            self._levels.register(specs[:1])
            if len(specs) == 1:
                rows = self._database.call(_ENQUEUE_ONE, made.parameters_of_one())
            else:
                rows = self._database.call(_ENQUEUE_PLAIN, made.parameters())
            return made.tasks(rows[0][0])
        for spec in specs:
            check_spec(spec)
        self._levels.register(specs)
        places, distinct = _distinct(specs)
        parameters = pack_specs(distinct, self._ids) if distinct else None

        rows = self._with_writes((_ENQUEUE, parameters) if parameters else None, writes, 0)
        tasks = [task_of(row, 1) for row in rows]
        return [tasks[place] for place in places]

    def claim(self, request: ClaimRequest) -> list[Claim]:
        return self._claims(self._database.call(_CLAIM, pack_request(request)), 1)

    def _claims(self, rows: Sequence[Row], at: int) -> list[Claim]:
        """The claims, by fence, of rows that have the answers and then, at this place, the task."""
        claims: list[Claim] = []
        for row in rows:
            task = row[at:]
            self._hands.take(task)
            self._held.take(task)
            claims.append(claim_of(task_of(task), row[at - 1]))
        claims.sort(key=attrgetter("fence"))
        return claims

    def take(self, worker: WorkerId, task: TaskId) -> Claim | None:
        parameters = {"worker": worker, "task": task if is_id(task) else _NOBODY}
        claims = self._claims(self._database.call(_TAKE_TASK, parameters), 1)
        return claims[0] if claims else None

    def renew(self, worker: WorkerId, held: Sequence[int] = ()) -> Renewal:
        row = self._row("renew", {"worker": worker, "held": array(held)})
        assert row is not None
        return Renewal(utc(row[0]), *map(fences_of, row[1:]))

    def commit(
        self,
        commits: Sequence[Commit],
        *,
        writes: Writes | None = None,
        eager: ClaimRequest | None = None,
    ) -> list[Committed]:
        if not commits:
            return self._only_writes(writes)
        committed, _ = self._commit(commits, eager, writes, claim=False)
        return committed

    def commit_and_claim(
        self,
        commits: Sequence[Commit],
        request: ClaimRequest,
        *,
        writes: Writes | None = None,
    ) -> tuple[list[Committed], list[Claim]]:
        return self._commit(commits, request, writes, claim=True)

    def _commit(
        self,
        commits: Sequence[Commit],
        request: ClaimRequest | None,
        writes: Writes | None,
        *,
        claim: bool,
    ) -> tuple[list[Committed], list[Claim]]:
        if writes is None and commits and (endings := self._hands.endings(commits)) is not None:
            done = self._finish(endings, request if claim else None)
            if done is not None:
                return done
        for commit in commits:
            check_commit(commit)
        self._levels.register(call.task for commit in commits for call in commit.calls)
        steps = Steps.plan(commits, self._held, request, self._ids.new_id, claim=claim)
        if commits and steps is not None and (done := self._step(steps, writes)) is not None:
            return done
        if not all(is_id(call) for commit in commits for call in commit.applied):
            raise BadRequest("`applied` names a call that the task never made")
        call_ids = [CallId(self._ids.new_id()) for commit in commits for _ in commit.calls]
        parameters = pack_commits(commits, call_ids, self._ids, request, claim=claim)
        rows = self._with_writes((_COMMIT, parameters), writes, 1, len(commits))
        self._held.let_go([commit.fence for commit in commits])
        for row in rows:
            self._held.take(row[5:])
        return _committed(commits, call_ids, rows)

    def _step(
        self, steps: Steps, writes: Writes | None
    ) -> tuple[list[Committed], list[Claim]] | None:
        """Takes steps the short way; None if that is not possible any more."""
        sent = (_STEP, steps.parameters())

        def work(transaction: PostgresTransaction) -> None:
            transaction.send(*sent)
            if writes is not None:
                writes(transaction)

        try:
            rows = self._database.transact(work)[0] if writes else self._database.call(*sent)
        except NotPlain:
            return None
        finally:
            self._held.let_go(steps.fences)
        done, claims = steps.outcome(rows[0], self._held)
        return done, [*claims, *self._claims(rows[1:], 7)]

    def _finish(
        self, endings: Sequence[Ending], request: ClaimRequest | None
    ) -> tuple[list[Committed], list[Claim]] | None:
        """Ends tasks the short way; None if that is not possible any more."""
        if len(endings) == 1 and request is not None and is_for_one(request):
            sent = _FINISH_ONE, pack_ending(endings[0], request)
        else:
            sent = _FINISH, pack_endings(endings, pack_request(request))
        try:
            rows = self._database.call(*sent)
        except NotPlain:
            return None
        finally:
            self._hands.let_go(endings)
        closed_at, deadlines = rows[0][:2]
        done: list[Committed] = [
            Ended(partial(ending.task, closed_at, deadline))
            for ending, deadline in zip(endings, deadlines or [None] * len(endings), strict=True)
        ]
        if len(done) > 1:
            places = sorted(range(len(endings)), key=lambda place: endings[place].at)
            done = [done[place] for place in places]
        if request is None:
            return done, []
        claimed = [claimed_row(row, request) for row in rows if row[3] is not None]
        return done, self._claims(claimed, 1)

    def _only_writes(self, writes: Writes | None) -> list[Committed]:
        if writes is not None:
            self._database.transact(writes)
        return []

    def _with_writes(
        self, statement: Sent | None, writes: Writes | None, known: int, count: int | None = None
    ) -> list[Row]:
        """The rows of a statement, with a caller's own writes in its transaction.

        Each of the first rows, or of all, tells in this column whether what was asked for was known
        before. If all was, the writes are not run.
        """
        if writes is None:
            return self._database.call(*statement) if statement else []

        def work(transaction: PostgresTransaction) -> None:
            rows: list[Row] = []
            if statement is not None:
                transaction.send(*statement)
                (rows,) = transaction.flush()
            asked = rows[:count]
            if not (asked and all(row[known] for row in asked)):
                writes(transaction)

        answers = self._database.transact(work)
        return answers[0] if statement else []

    def extend(self, fence: Fence, by: timedelta) -> datetime | None:
        if not timedelta(0) < by <= MAX_DURATION:
            raise BadRequest(f"an extension by {by} is not possible; use more than zero")
        row = self._row("extend", {"fence": fence, "by": by})
        assert row is not None
        return None if row[0] is None else utc(row[0])

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
) -> tuple[list[Committed], list[Claim]]:
    """The answers and the claims: a row for each commit in their order, then rows for eager callees
    of a commit, then rows at 0 for what was claimed besides."""
    answer: list[Committed] = []
    claims: dict[Fence, Claim] = {}
    new_ids = iter(call_ids)
    for at, _repeated, taken, known, replies, *task in rows:
        if taken:
            claim = claim_of(task_of(task), replies)
            claims[claim.fence] = claim
            if at:
                before = answer[at - 1]
                answer[at - 1] = replace(before, eager=(*before.eager, claim))
        else:
            new = {call.key: next(new_ids) for call in commits[at - 1].calls}
            answer.append(Committed(task_of(task), new if known is None else known))
    return answer, [claims[fence] for fence in sorted(claims)]
