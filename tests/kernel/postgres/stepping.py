"""What the tests of steps share: flows in a worker's hands, and their callees."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from afl.kernel.model import (
    CallId,
    CallSpec,
    Claim,
    ClaimRequest,
    Close,
    Commit,
    Committed,
    Continue,
    Outcome,
    TaskSpec,
    Wake,
    WorkerId,
)
from afl.kernel.port import Transaction, Writes
from afl.kernel.postgres.database import PostgresTransaction
from afl.kernel.postgres.statements import numbered
from afl.kernel.postgres.stepping import Stepped
from afl.kernel.postgres.store import PostgresStore

W = WorkerId("w")
HOUR = timedelta(hours=1)
DONE = Close(Outcome.SUCCESS, result={"done": [1]}, error="but")
FLOW = TaskSpec("flow", "flow", wake=Wake.ANY, timeout=9 * HOUR)
TOOL = TaskSpec("tool", "n.tool", input={"x": 'ä\\"%s'}, trace="t", priority=2)
NOTE = numbered("note", "insert into public.mark values (%(name)s::text)")


def request(n: int = 1, names: Sequence[str] = ("tool",), token: str | None = None) -> ClaimRequest:
    return ClaimRequest(W, tuple(names), n=n, token=token)


def flows(store: PostgresStore, n: int = 1, spec: TaskSpec = FLOW) -> list[Claim]:
    store.enqueue([spec] * n)
    return store.claim(request(n, ("flow",)))


def call(key: str, spec: TaskSpec = TOOL) -> CallSpec:
    return CallSpec(key, spec, HOUR)


def call_of(callee: Claim) -> CallId:
    assert callee.task.parent_call is not None
    return callee.task.parent_call


def begin(store: PostgresStore, held: Sequence[Claim]) -> list[Claim]:
    """Flows call for the first time; the callees are born running."""
    commits = [Commit(flow.fence, Continue(), calls=(call("0"),)) for flow in held]
    done, claims = store.commit_and_claim(commits, request(len(held)))
    check(store, done)
    assert [claim for each in done for claim in each.eager] == claims
    return claims


def step(flow: Claim, callee: Claim, number: int, *calls: CallSpec) -> list[Commit]:
    """A callee ends, and its flow takes in the answer and goes on."""
    applied = (call_of(callee),)
    return [
        Commit(callee.fence, DONE),
        Commit(flow.fence, Continue(), number, calls=calls, applied=applied),
    ]


def check(store: PostgresStore, done: Sequence[Committed], *, short: bool = True) -> None:
    """What was answered is what was stored, and went that way."""
    for each in done:
        assert isinstance(each, Stepped) == short
        assert each.task == store.get_task(each.task.id)
        for key, id_ in each.calls.items():
            found = store.find_call(each.task.id, key)
            assert found is not None
            assert found.id == id_
        for claim in each.eager:
            assert claim.task == store.get_task(claim.task.id)
            assert claim.task.parent_call in each.calls.values()


def assert_short(done: Sequence[Committed]) -> None:
    assert all(isinstance(each, Stepped) for each in done)


def note(name: str) -> Writes:
    def write(transaction: Transaction) -> None:
        assert isinstance(transaction, PostgresTransaction)
        transaction.send(NOTE, {"name": name})

    return write


def notes(store: PostgresStore) -> list[str]:
    return [row[0] for row in store.database.rows(b"select name from public.mark order by 1", {})]
