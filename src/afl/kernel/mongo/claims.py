"""Which tasks a worker gets, and how it takes them.

A task is taken by an update of its one document that fits only as long as the task is ready: who
is second takes the next, and nobody waits for anybody. A fence is asked for after the tasks were
seen; a task that had a greater one since is left alone, so that fences only ever grow. # I9
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pymongo import UpdateMany

from afl.kernel import rules
from afl.kernel.errors import NotFound
from afl.kernel.model import Call, Claim, ClaimRequest, Task, TaskId, WorkerId
from afl.kernel.mongo.core import Core
from afl.kernel.mongo.rows import worker_out
from afl.kernel.mongo.transaction import Document
from afl.kernel.mongo.values import to_micros

_IN_ORDER = [("order", 1), ("run_at", 1), ("_id", 1)]
#: Each name in each list is a place of its own in the index; MongoDB merges up to 200.
_PLACES = 150
#: After so many looks that found only what others were quicker to take, the answer is what it is.
_LOOKS = 8


class MongoClaims(Core):
    """Claiming, for `port.TaskQueue`."""

    def claim(self, request: ClaimRequest) -> list[Claim]:
        self._check_live(request.worker)
        if taken := self._taken_by_token(request):
            return self._claims_of(taken)
        return self._claim_ready(request, request.n)

    def take(self, worker: WorkerId, task: TaskId) -> Claim | None:
        self._check_live(worker)
        now = to_micros(self._database.now())
        ready = {"_id": task, "state": "ready", "run_at": {"$lte": now}}
        if self._database.find_one("task", ready, {"_id": 1}) is None:
            return None
        claims = self._claims_of(self._take_one(task, now, worker, None))
        return claims[0] if claims else None

    def _claim_ready(self, request: ClaimRequest, n: int) -> list[Claim]:
        """Takes up to so many of the ready tasks that fit, the first in order first."""
        taken: list[Task] = []
        for _ in range(_LOOKS):
            if len(taken) >= n:
                break
            now = to_micros(self._database.now())
            found = self._ready(request, n - len(taken), now)
            if not found:
                break
            taken += self._take_all(found, now, request)
        return self._claims_of(taken)

    def _ready(self, request: ClaimRequest, n: int, now: int) -> list[TaskId]:
        """The first of the tasks that fit, in order."""
        found = [
            row
            for lists, names in _places(request)
            for row in self._database.find(
                "task",
                {
                    "state": "ready",
                    "list": {"$in": lists},
                    "served_as": {"$in": names},
                    "run_at": {"$lte": now},
                },
                fields={"order": 1, "run_at": 1},
                sort=_IN_ORDER,
                limit=n,
            )
        ]
        found.sort(key=lambda row: (row["order"], row["run_at"], row["_id"]))
        return list(dict.fromkeys(TaskId(row["_id"]) for row in found))[:n]

    def _take_all(self, tasks: list[TaskId], now: int, request: ClaimRequest) -> list[Task]:
        if len(tasks) == 1:
            return self._take_one(tasks[0], now, request.worker, request.token)
        first = self._take_fences(len(tasks))
        ready = {**_still_ready(now, first), "_id": {"$in": tasks}}
        place = {"$indexOfArray": [{"$literal": tasks}, "$_id"]}
        change = _taken({"$add": [first, place]}, request.worker, request.token)
        self._database.write("task", [UpdateMany(ready, [{"$set": change}])])
        mine = {"fence": {"$gte": first, "$lt": first + len(tasks)}, "worker": request.worker}
        return self._tasks(mine, [("fence", 1)])

    def _take_one(self, task: TaskId, now: int, worker: WorkerId, token: str | None) -> list[Task]:
        fence = self._take_fences(1)
        row = self._database.change_one(
            "task",
            {**_still_ready(now, fence), "_id": task},
            [{"$set": _taken(fence, worker, token)}],
        )
        return [] if row is None else [self._documents.task_out(row)]

    def _claims_of(self, tasks: Sequence[Task]) -> list[Claim]:
        """The tasks, with the answers that each has not taken in."""
        if not tasks:
            return []
        replies = self._replies([task.id for task in tasks])
        claims = []
        for task in tasks:
            assert task.fence is not None
            claims.append(Claim(task, task.fence, tuple(replies.get(task.id, ()))))
        return claims

    def _replies(self, tasks: list[TaskId]) -> dict[TaskId, list[Call]]:
        rows = self._database.find(
            "call",
            {"caller": {"$in": tasks}, "untaken": True},
            sort=[("replied_at", 1), ("_id", 1)],
        )
        replies: dict[TaskId, list[Call]] = {}
        for row in rows:
            call = self._documents.call_out(row)
            replies.setdefault(call.caller, []).append(call)
        return replies

    def _taken_by_token(self, request: ClaimRequest) -> list[Task]:
        """What an earlier request with the same token took and the worker still holds, in the order
        of the fences."""
        if request.token is None:
            return []
        return self._tasks({"worker": request.worker, "claim_token": request.token}, [("fence", 1)])

    def _check_live(self, worker: WorkerId) -> None:
        row = self._database.find_one("worker", {"_id": worker})
        if row is None or not rules.is_live(worker_out(row), self._database.now()):
            raise NotFound(f"there is no live worker {worker}; register it before it claims")


def _still_ready(now: int, fence: int) -> Document:
    """What must be true of a task when it is taken: ready and due, and no fence that is greater."""
    return {"state": "ready", "run_at": {"$lte": now}, "last_fence": {"$lt": fence}}


def _taken(fence: Any, worker: WorkerId, token: str | None) -> Document:  # noqa: ANN401 - or a sum
    """Into a worker's hands. # I1, I3"""
    return {
        "state": "running",
        "fence": fence,
        "last_fence": fence,
        "worker": {"$literal": worker},
        "claim_token": {"$literal": token},
        "reason": None,
    }


def _places(request: ClaimRequest) -> Iterator[tuple[list[str], list[str]]]:
    """The lists and names of a request, in parts that an index can serve in order."""
    lists, names = list(request.lists), list(request.names)
    if not lists or not names:
        return
    for at in range(0, len(lists), _PLACES):
        some = lists[at : at + _PLACES]
        step = max(1, _PLACES // len(some))
        for begin in range(0, len(names), step):
            yield some, names[begin : begin + step]
