"""The short way of a step: callees that end, and flows that take in the answers and call the next.

What is plain is decided here, from the rows of tasks that were claimed here; whether it still is,
by the server, under its locks. Whatever is not goes the long way, which does the same. What comes
of a step is put together here, from what is known and the little that only the server knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache, partial
from typing import Any

from afl.kernel.model import (
    MAX_DEPTH,
    CallId,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Committed,
    Fence,
    Outcome,
    State,
    Suspend,
    Task,
)
from afl.kernel.postgres.births import Birth, pack_births
from afl.kernel.postgres.packing import Parameters, array, json_text, pack_request, word_array
from afl.kernel.postgres.plain import Ended
from afl.kernel.postgres.rows import COLUMN, is_id, task_of
from afl.kernel.rules import serves

_ID, _RUN, _LANE, _DEPTH = COLUMN["id"], COLUMN["run"], COLUMN["lane"], COLUMN["depth"]
_KIND, _NAME, _STATE, _OUTCOME = (COLUMN[name] for name in ("kind", "name", "state", "outcome"))
_PARENT_CALL, _CALLER = COLUMN["parent_call"], COLUMN["caller"]
_FENCE, _WORKER, _TOKEN = COLUMN["fence"], COLUMN["worker"], COLUMN["claim_token"]
_COMMITTED_FENCE, _COMMITS, _CRASHES = (
    COLUMN[name] for name in ("committed_fence", "commits", "crashes")
)
_RESULT, _ERROR, _REASON = COLUMN["result"], COLUMN["error"], COLUMN["reason_code"]
_DEADLINE, _RUN_AT, _CLOSED_AT = COLUMN["deadline"], COLUMN["run_at"], COLUMN["closed_at"]
_MANY = 10_000

#: The row of a task, as it was claimed or as its last commit has left it.
TaskRow = Sequence[Any]


class HeldRows:
    """Rows of tasks that were claimed here: what was read once need not be read again. Those that
    are never let go of are forgotten in the end."""

    def __init__(self) -> None:
        self._rows: dict[int, TaskRow] = {}

    def take(self, row: TaskRow) -> None:
        """Remembers the row of a task in hand, if lanes have nothing to do with it."""
        if row[_FENCE] is not None and row[_LANE] is None:
            self._rows[row[_FENCE]] = row
            if len(self._rows) > _MANY:
                self.let_go(list(self._rows)[: _MANY // 10])

    def get(self, fence: Fence) -> TaskRow | None:
        return self._rows.get(fence)

    def let_go(self, fences: Sequence[int]) -> None:
        for fence in fences:
            self._rows.pop(fence, None)


@dataclass(slots=True)
class _Part:
    """What one commit makes of a task."""

    row: TaskRow
    commit: Commit
    #: what it ends with, and whether it waits instead
    outcome: str | None = None
    suspends: bool = False
    result: str | None = None
    error: str | None = None
    #: its caller takes in the answer with the same request
    taken: bool = False
    calls: dict[str, CallId] = field(default_factory=dict)
    born: list[Birth] = field(default_factory=list)

    def event(self) -> str | None:
        """The entry in the outbox of a task that ends."""
        outcome, row = self.outcome, self.row
        return (
            None if outcome is None else _event(outcome, row[_KIND], row[_NAME], row[_PARENT_CALL])
        )

    def after(
        self, now: datetime, deadline: datetime | None, stands: Sequence[Any] | None
    ) -> TaskRow:
        """The row as the commit has left it."""
        row = list(self.row)
        row[_COMMITTED_FENCE] = row[_FENCE]
        row[_COMMITS] = self.commit.number + 1
        row[_CRASHES] = 0
        row[_DEADLINE] = deadline
        if stands is None and self.outcome is None:
            return row
        row[_FENCE] = row[_WORKER] = row[_TOKEN] = None
        if stands is None:
            row[_STATE], row[_OUTCOME] = State.CLOSED.value, self.outcome
            row[_RESULT], row[_ERROR] = self.result, self.error
            row[_CLOSED_AT] = now
            return row
        state, code, until, by = stands
        row[_STATE] = state
        row[_REASON : _REASON + 4] = (
            code,
            now,
            None if until is None else datetime.fromisoformat(until),
            by,
        )
        if state == State.READY.value:
            row[_RUN_AT] = now
        return row

    def task(self, now: datetime, deadline: datetime | None, stands: Sequence[Any] | None) -> Task:
        return task_of(self.after(now, deadline, stands))


def _event(outcome: str, kind: str, name: str, call: str | None) -> str:
    """As `rules.closed_event` has it. The id of a call needs no quoting."""
    return _event_of(outcome, kind, name) % ("null" if call is None else f'"{call}"')


@lru_cache(maxsize=4096)
def _event_of(outcome: str, kind: str, name: str) -> str:
    before = json_text({"outcome": outcome, "kind": kind, "name": name})
    assert before is not None
    return before[:-1].replace("%", "%%") + ',"parent_call":%s,"dead":false}'


class Stepped(Ended):
    """What a step came to. The task is put together when somebody looks at it."""

    __slots__ = ()

    def __init__(
        self,
        make: Callable[[], Task],
        calls: Mapping[str, CallId],
        eager: tuple[Claim, ...],
    ) -> None:
        super().__init__(make)
        object.__setattr__(self, "calls", calls)
        object.__setattr__(self, "eager", eager)


class Steps:
    """A request whose commits can all be taken on the short way."""

    def __init__(self, request: ClaimRequest | None, *, claim: bool) -> None:
        self._request = request
        self._claim = claim
        self._parts: list[_Part] = []
        self._applied: list[tuple[str, CallId]] = []
        self._births: list[Birth] = []

    @classmethod
    def plan(
        cls,
        commits: Sequence[Commit],
        held: HeldRows,
        request: ClaimRequest | None,
        new_id: Callable[[], str],
        *,
        claim: bool,
    ) -> Steps | None:
        """The steps, if they are plain."""
        steps = cls(request, claim=claim)
        seen: set[str] = set()
        for commit in commits:
            row = held.get(commit.fence)
            if row is None or row[_ID] in seen:
                return None
            # after its caller: in this order, the caller would have gone on without its answer
            if row[_CALLER] in seen or not steps._add(_Part(row, commit), new_id):
                return None
            seen.add(row[_ID])
        if any(_may_have_called(part) and part.row[_CALLER] in seen for part in steps._parts):
            return None
        if not steps._take_in():
            return None
        steps._choose_eager()
        return steps

    def _add(self, part: _Part, new_id: Callable[[], str]) -> bool:
        """Adds what a commit does, if it is plain."""
        row, commit, then = part.row, part.commit, part.commit.then
        expected = row[_COMMITS] if row[_COMMITTED_FENCE] == commit.fence else 0
        if commit.cards or commit.number != expected:
            return False
        if isinstance(then, Close):
            if then.outcome is Outcome.FAILED:
                return False
            part.outcome = then.outcome.value
            part.result, part.error = json_text(then.result), json_text(then.error)
        part.suspends = isinstance(then, Suspend)
        for call in commit.calls:
            spec = call.task
            if spec.lane is not None or row[_DEPTH] + 1 >= MAX_DEPTH:
                return False
            if spec.run is not None and spec.run != row[_RUN]:
                return False
            birth = Birth(call, row[_ID], row[_RUN], row[_DEPTH] + 1, CallId(new_id()), new_id)
            part.calls[call.key] = birth.call_id
            part.born.append(birth)
            self._births.append(birth)
        self._applied += [(row[_ID], call) for call in commit.applied]
        self._parts.append(part)
        return True

    def _take_in(self) -> bool:
        """Marks the answers that come and are taken in with this request."""
        if not self._applied:
            return True
        coming = {part.row[_PARENT_CALL]: part for part in self._parts if part.outcome is not None}
        rest: list[tuple[str, CallId]] = []
        for by, call in self._applied:
            part = coming.get(call)
            if part is not None and part.row[_CALLER] == by:
                part.taken = True
            elif is_id(call):
                rest.append((by, call))
            else:
                return False
        self._applied = rest
        return True

    def _choose_eager(self) -> None:
        """Puts the callees first that are to be born running, in the order of claims."""
        request = self._request
        if request is None or request.n <= 0:
            return
        names, lists = request.names, request.lists
        fitting = [
            birth
            for birth in self._births
            if not birth.spec.delay and birth.spec.list in lists and serves(names, birth.spec.name)
        ]
        fitting.sort(key=_order)
        for birth in fitting[: request.n]:
            birth.is_eager = True
        self._births.sort(key=lambda birth: (not birth.is_eager, _order(birth)))

    @property
    def fences(self) -> list[Fence]:
        """The fences of all tasks that take part."""
        return [part.commit.fence for part in self._parts]

    def parameters(self) -> Parameters:
        """Those of the statement `step`."""
        parts = self._parts
        mine = {part.row[_ID]: None for part in parts}
        callers = dict.fromkeys(part.row[_CALLER] for part in parts if part.outcome is not None)
        outside = [each for each in callers if each is not None and each not in mine]
        parents = [part.row[_ID] for part in parts if part.outcome and _may_have_called(part)]
        return {
            "locks": word_array((*mine, *outside)),
            "wake": word_array(outside) if outside else None,
            "parents": word_array(parents) if parents else None,
            **_pack_tasks([part for part in parts if not part.suspends]),
            **_pack_suspends([part for part in parts if part.suspends]),
            "applied_by": word_array(by for by, _ in self._applied) if self._applied else None,
            "applied": word_array(call for _, call in self._applied) if self._applied else None,
            **pack_births(self._births),
            "eager": sum(birth.is_eager for birth in self._births),
            **pack_request(self._request),
            "claim": self._claim,
        }

    def outcome(self, row: Sequence[Any], held: HeldRows) -> tuple[list[Committed], list[Claim]]:
        """What the first row of the answer says: the answers to all commits, and new callees."""
        now, of_tasks, of_suspended, stands, fences, deadlines = row[:6]
        claims: list[Claim] = []
        by_call: dict[CallId, Claim] = {}
        for birth, fence, deadline in zip(
            self._births, fences or (), deadlines or (), strict=False
        ):
            made = birth.row(now, fence, deadline, self._request)
            held.take(made)
            claim = by_call[birth.call_id] = Claim(task_of(made), fence, ())
            claims.append(claim)
        tasks, suspended = (
            iter(of_tasks or ()),
            iter(zip(of_suspended or (), stands or (), strict=True)),
        )
        done: list[Committed] = []
        for part in self._parts:
            deadline, stand = next(suspended) if part.suspends else (next(tasks), None)
            make = partial(part.task, now, deadline, stand)
            born = [by_call[birth.call_id] for birth in part.born if birth.is_eager]
            born.sort(key=_fence)
            done.append(Stepped(make, part.calls, tuple(born)))
            if part.outcome is None and not part.suspends:
                held.take(part.after(now, deadline, None))
        return done, claims


def _may_have_called(part: _Part) -> bool:
    """Whether there may be callees of a task that were not called just now."""
    return part.row[_COMMITTED_FENCE] is not None


def _pack_tasks(parts: Sequence[_Part]) -> Mapping[str, str | int | None]:
    if not parts:
        return _NO_TASKS
    return {
        "tasks": word_array([part.row[_ID] for part in parts]),
        "fences": word_array([part.commit.fence for part in parts]),
        "numbers": word_array([part.commit.number for part in parts]),
        "outcomes": word_array([part.outcome for part in parts]),
        "results": array([part.result for part in parts]),
        "errors": array([part.error for part in parts]),
        "events": array([part.event() for part in parts]),
        "answers": word_array([part.row[_PARENT_CALL] if part.outcome else None for part in parts]),
        "taken": word_array([part.taken for part in parts]),
    }


def _pack_suspends(parts: Sequence[_Part]) -> Mapping[str, str | int | None]:
    if not parts:
        return _NO_SUSPENDS
    return {
        "suspends": word_array([part.row[_ID] for part in parts]),
        "suspend_fences": word_array([part.commit.fence for part in parts]),
        "suspend_numbers": word_array([part.commit.number for part in parts]),
    }


_NO_TASKS: Mapping[str, str | int | None] = dict.fromkeys(
    ["tasks", "fences", "numbers", "outcomes", "results", "errors", "events", "answers", "taken"]
)
_NO_SUSPENDS: Mapping[str, str | int | None] = dict.fromkeys(
    ("suspends", "suspend_fences", "suspend_numbers")
)


def _order(birth: Birth) -> tuple[int, str]:
    return -birth.spec.priority, birth.id


def _fence(claim: Claim) -> Fence:
    return claim.fence
