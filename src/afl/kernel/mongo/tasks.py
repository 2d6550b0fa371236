"""The transactions of `port.TaskQueue`, but for the sweep."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from afl.kernel.errors import BadRequest, NotFound
from afl.kernel.machine import transitions
from afl.kernel.machine.commits import Step, apply, extend, hand_on, hand_out
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
from afl.kernel.mongo.claims import MongoClaims
from afl.kernel.mongo.core import no_call, no_task
from afl.kernel.mongo.rows import held_by, lane_id
from afl.kernel.mongo.values import to_micros, to_time
from afl.kernel.mongo.working_set import WorkingSet
from afl.kernel.port import Writes
from afl.kernel.requests import MAX_DURATION, check_reply, check_spec, json_copy


class MongoTasks(MongoClaims):
    """See `port.TaskQueue` for what each method promises."""

    def enqueue(self, specs: Sequence[TaskSpec], writes: Writes | None = None) -> list[Task]:
        for spec in specs:
            check_spec(spec)

        def work(rows: WorkingSet) -> list[Task]:
            known = _known_idems(rows, specs)
            tasks = []
            is_new = False
            for spec in specs:
                key = None if spec.idem is None else (spec.tenant, spec.idem)
                if key is not None and key in known:
                    tasks.append(rows.task(known[key]))
                    continue
                is_new = True
                task = transitions.make_root(rows, rows, spec)
                if key is not None:
                    known[key] = task.id
                tasks.append(task)
            if writes is not None and (is_new or not specs):
                writes(rows.transaction)
            return tasks

        if writes is None and len(specs) == 1 and _stands_alone(specs[0]):
            return self._work_alone(work)
        return self._work(work)

    def renew(self, worker: WorkerId, held: Sequence[int] = ()) -> Renewal:
        now = to_micros(self._database.now())
        row = self._database.change_one(
            "worker",
            {"_id": worker},
            [
                {
                    "$set": {
                        "state": {"$cond": [{"$eq": ["$state", "error"]}, "running", "$state"]},
                        "seen_at": now,
                        "expires_at": {"$add": [now, "$lease"]},
                    }
                }
            ],
        )
        if row is None:
            raise NotFound(f"there is no worker {worker}; register it first")
        found = self._database.find(
            "task", held_by(worker), fields={"fence": 1, "stop_requested": 1}
        )
        mine = {each["fence"]: each["stop_requested"] for each in found}
        return Renewal(
            to_time(row["expires_at"]),
            tuple(Fence(fence) for fence in held if fence not in mine),
            tuple(Fence(fence) for fence in held if mine.get(fence)),
            tuple(map(Fence, sorted(mine.keys() - set(held)))),
        )

    def commit(
        self,
        commits: Sequence[Commit],
        *,
        writes: Writes | None = None,
        eager: ClaimRequest | None = None,
    ) -> list[Committed]:
        def work(rows: WorkingSet) -> list[Committed]:
            steps = _apply(rows, commits, eager)
            answers = hand_out(rows, steps, eager)
            _run_writes_once(rows, steps, writes)
            return answers

        return self._work(work, fences=1 if eager is None else eager.n)

    def commit_and_claim(
        self,
        commits: Sequence[Commit],
        request: ClaimRequest,
        *,
        writes: Writes | None = None,
    ) -> tuple[list[Committed], list[Claim]]:
        """The claim follows the commit: a worker that is lost between them has committed, and
        repeats the request for its claims as it would for a lost answer."""

        def work(rows: WorkingSet) -> tuple[list[Committed], list[Claim], int]:
            steps = _apply(rows, commits, request)
            answers = hand_on(rows, steps, request)
            _run_writes_once(rows, steps, writes)
            return answers

        answers, claims, left = self._work(work, fences=request.n)
        if left > 0:
            claims += self._claim_ready(request, left, is_busy=bool(commits))
        return answers, claims

    def extend(self, fence: Fence, by: timedelta) -> datetime | None:
        if not timedelta(0) < by <= MAX_DURATION:
            raise BadRequest(f"an extension by {by} is not possible; use more than zero")
        return self._work(lambda rows: extend(rows, fence, by))

    def reply(self, call: CallId, status: CallStatus, body: Json = None) -> bool:
        check_reply(status)
        given = json_copy(body, "the answer")

        def work(rows: WorkingSet) -> bool:
            row = rows.find_call(call)
            if row is None:
                raise no_call(call)
            return transitions.answer(rows, row, status, given)

        return self._work(work)

    def stop(self, task: TaskId, *, force: bool = False, error: Json = None) -> Stopped:
        given = json_copy(error, "the error")

        def work(rows: WorkingSet) -> Stopped:
            row = rows.find_task(task)
            if row is None:
                raise no_task(task)
            return transitions.stop(rows, row, given, force=force)

        return self._work(work)


def _stands_alone(spec: TaskSpec) -> bool:
    """Whether a task is one document, and nothing else depends on it."""
    return spec.idem is None and spec.lane is None and spec.id is None


def _known_idems(rows: WorkingSet, specs: Sequence[TaskSpec]) -> dict[tuple[str, str], TaskId]:
    """The tasks that have one of these idems."""
    keys = [lane_id(spec.tenant, spec.idem) for spec in specs if spec.idem is not None]
    if not keys:
        return {}
    found = rows.transaction.find("idem", {"_id": {"$in": keys}})
    known = {(row["_id"]["tenant"], row["_id"]["name"]): TaskId(row["task"]) for row in found}
    rows.load_tasks(known.values())
    return known


def _apply(rows: WorkingSet, commits: Sequence[Commit], request: ClaimRequest | None) -> list[Step]:
    rows.load_fences([commit.fence for commit in commits], request)
    rows.load_calls(call for commit in commits for call in commit.applied)
    return [apply(rows, rows, commit) for commit in commits]


def _run_writes_once(rows: WorkingSet, steps: list[Step], writes: Writes | None) -> None:
    """The caller's own writes, unless they were made when the same commits were."""
    if writes is not None and (not steps or not all(step.repeated for step in steps)):
        writes(rows.transaction)
