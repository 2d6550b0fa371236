"""Which tasks a worker gets, and how it takes them.

A task is taken by an update of its one document that fits only as long as the task is ready: who
is second takes the next, and nobody waits for anybody. A fence is greater than all that were given
before its claim began, and a task that had a greater one since is left alone. # I9
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pymongo import UpdateMany

from afl.kernel import rules
from afl.kernel.errors import NotFound
from afl.kernel.model import Call, Claim, ClaimRequest, Fence, TaskId, WorkerId
from afl.kernel.mongo.core import Core
from afl.kernel.mongo.rows import held_by, worker_out
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
        ready = {"_id": task, **_due(to_micros(self._database.now()))}
        if self._database.find_one("task", ready, {"_id": 1}) is None:
            return None
        claims = self._claims_of(self._take_first(ready, worker, None))
        return claims[0] if claims else None

    def _claim_ready(self, request: ClaimRequest, n: int, *, is_busy: bool = False) -> list[Claim]:
        """Takes up to so many of the ready tasks that fit, the first in order first. Whoever is
        busy does not look whether there is one before it takes one."""
        taken: list[Document] = []
        crowd = 0
        if is_busy and n == 1 and len(fitting := _fitting(request)) == 1:
            due = _due(to_micros(self._database.now()))
            return self._claims_of(
                self._take_first({**due, **fitting[0]}, request.worker, request.token)
            )
        while len(taken) < n and crowd < _LOOKS:
            due = _due(to_micros(self._database.now()))
            wanted = n - len(taken)
            # those that stand first are being taken by others: look further back
            found = self._ready(request, due, wanted * (1 + crowd))
            if not found:
                break
            chosen = self._random.sample(found, min(wanted, len(found))) if crowd else found
            got = self._take_all(chosen, due, request)
            taken += got
            crowd += len(got) < len(chosen)
        return self._claims_of(taken)

    def _ready(self, request: ClaimRequest, due: Document, n: int) -> list[TaskId]:
        """The first of the tasks that fit, in order."""
        found = [
            row
            for fitting in _fitting(request)
            for row in self._database.find(
                "task",
                {**due, **fitting},
                fields={"order": 1, "run_at": 1},
                sort=_IN_ORDER,
                limit=n,
            )
        ]
        found.sort(key=lambda row: (row["order"], row["run_at"], row["_id"]))
        return list(dict.fromkeys(TaskId(row["_id"]) for row in found))[:n]

    def _take_all(
        self, tasks: list[TaskId], due: Document, request: ClaimRequest
    ) -> list[Document]:
        if len(tasks) == 1:
            places = _fitting(request)
            # whoever loses a race for the first gets the next
            where = {**due, **places[0]} if len(places) == 1 else {**due, "_id": tasks[0]}
            return self._take_first(where, request.worker, request.token)
        first = self._take_fences(len(tasks))
        ready = {**due, "last_fence": {"$lt": first}, "_id": {"$in": tasks}}
        place = {"$indexOfArray": [{"$literal": tasks}, "$_id"]}
        change = _taken({"$add": [first, place]}, request.worker, request.token)
        self._database.write("task", [UpdateMany(ready, [{"$set": change}])])
        mine = {
            "state": "running",
            "last_fence": {"$gte": first, "$lt": first + len(tasks)},
            "worker": request.worker,
        }
        return self._database.find("task", mine, sort=[("last_fence", 1)])

    def _take_first(self, where: Document, worker: WorkerId, token: str | None) -> list[Document]:
        """Takes the first task that fits; a list of one, or of none."""
        fence = self._take_fences(1)
        row = self._database.change_one(
            "task",
            {**where, "last_fence": {"$lt": fence}},
            [{"$set": _taken(fence, worker, token)}],
            sort=_IN_ORDER,
        )
        return [] if row is None else [row]

    def _claims_of(self, rows: Sequence[Document]) -> list[Claim]:
        """Taken tasks, with the answers that each has not taken in."""
        replies = self._replies([TaskId(row["_id"]) for row in rows if row["untaken"]])
        tasks = map(self._documents.task_out, rows)
        return [
            Claim(task, Fence(row["fence"]), tuple(replies.get(task.id, ())))
            for task, row in zip(tasks, rows, strict=True)
        ]

    def _replies(self, tasks: list[TaskId]) -> dict[TaskId, list[Call]]:
        if not tasks:
            return {}
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

    def _taken_by_token(self, request: ClaimRequest) -> list[Document]:
        """What an earlier request with the same token took and the worker still holds, in the order
        of the fences."""
        if request.token is None:
            return []
        mine = held_by(request.worker, request.token)
        return self._database.find("task", mine, sort=[("fence", 1)])

    def _check_live(self, worker: WorkerId) -> None:
        row = self._database.find_one("worker", {"_id": worker})
        if row is None or not rules.is_live(worker_out(row), self._database.now()):
            raise NotFound(f"there is no live worker {worker}; register it before it claims")


def _due(now: int) -> Document:
    return {"state": "ready", "run_at": {"$lte": now}}


def _taken(fence: Any, worker: WorkerId, token: str | None) -> Document:  # noqa: ANN401 - or a sum
    """Into a worker's hands. # I1, I3"""
    return {
        "state": "running",
        "fence": fence,
        "last_fence": fence,
        # under which it was last committed: that commit may be repeated
        "former_fence": "$committed_fence",
        "worker": {"$literal": worker},
        "claim_token": {"$literal": token},
        "reason": None,
    }


def _fitting(request: ClaimRequest) -> list[Document]:
    """What is true of tasks that fit, in parts that an index can serve in order."""
    lists, names = list(request.lists), list(request.names)
    if not lists or not names:
        return []
    parts = []
    for at in range(0, len(lists), _PLACES):
        some = lists[at : at + _PLACES]
        step = max(1, _PLACES // len(some))
        parts += [
            {"list": {"$in": some}, "served_as": {"$in": names[begin : begin + step]}}
            for begin in range(0, len(names), step)
        ]
    return parts
