"""No transaction reads a whole table or index, whatever the statistics say when it is planned."""

from __future__ import annotations

import re
from datetime import timedelta

import psycopg
import pytest
from psycopg import Connection

from afl.kernel.model import (
    CallSpec,
    CallStatus,
    CardSpec,
    ClaimRequest,
    Close,
    Commit,
    Outcome,
    Retry,
    Suspend,
    TaskSpec,
    Wake,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.postgres.database import Database, Row
from afl.kernel.postgres.plain import Ended
from afl.kernel.postgres.store import PostgresStore

W = WorkerId("w")
HOUR = timedelta(hours=1)
_SCAN = re.compile(r"(Seq Scan|Bitmap|Index (Only )?Scan)")
#: An index of what runs now: in a table as small as the one here it is as good as any other.
_RUNNING = "using task_fence"
_EXPLAIN = (
    "load 'auto_explain'",
    "set auto_explain.log_nested_statements = on",
    "set auto_explain.log_min_duration = 0",
    "set client_min_messages = log",
)


class Plans:
    """The plans of all statements, also of those inside functions, as the server tells them."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._known: set[int] = set()

    def watch(self, connection: Connection[Row]) -> None:
        pid = connection.info.backend_pid
        if pid not in self._known:
            self._known.add(pid)
            connection.add_notice_handler(
                lambda notice: self.seen.append(notice.message_primary or "")
            )
            for statement in _EXPLAIN:
                connection.execute(statement.encode())

    def whole_scans(self) -> list[str]:
        """Scans that look at everything, each with the beginning of its statement."""
        return [
            f"{line.strip()} in {' '.join(plan.split())[:160]}"
            for plan in self.seen
            for line, following in zip(plan.splitlines(), [*plan.splitlines()[1:], ""], strict=True)
            if _SCAN.search(line) and "Index Cond" not in following and _RUNNING not in line
        ]


def everything(store: PostgresStore, tag: str) -> None:
    """Each transaction with most of what it can do."""
    flow = TaskSpec("flow", "flow", lane=f"L{tag}", hold=False, wake=Wake.ANY, idem=tag)
    plain = TaskSpec("flow", "flow", lane=f"L{tag}", timeout=HOUR, retry=Retry(1))
    store.enqueue([flow, plain])
    (claim,) = store.claim(ClaimRequest(W, ("flow",), token=tag))
    calls = tuple(
        CallSpec(key, TaskSpec("tool", name, lane=lane, timeout=HOUR), HOUR)
        for key, name, lane in (("1", "tool", f"M{tag}"), ("2", "tool", None), ("3", "slow", None))
    )
    suspend = Commit(claim.fence, Suspend(), cards=(CardSpec("card", 1),), calls=calls)
    for _ in range(2):
        (waits,) = store.commit([suspend], eager=ClaimRequest(W, ("tool",), n=2, token=tag))
    done = Close(Outcome.SUCCESS, result=1)
    store.commit([Commit(each.fence, done) for each in waits.eager])
    store.reply(waits.calls["3"], CallStatus.OK, 1)
    store.reply(waits.calls["3"], CallStatus.OK, 2)
    store.renew(W, [1, 2, 3])
    for claim in store.claim(ClaimRequest(W, ("flow",), n=9)):
        applied = tuple(reply.id for reply in claim.replies)
        store.commit([Commit(claim.fence, Close(Outcome.FAILED), applied=applied)])
    (task,) = store.enqueue([TaskSpec("test", "other")])
    store.stop(task.id)
    ends_plainly(store)


def ends_plainly(store: PostgresStore) -> None:
    """The short ways: tasks that are made alike, and end without anybody waiting for them."""
    done = Close(Outcome.SUCCESS, result=1)
    tasks = store.enqueue([TaskSpec("test", "plain", timeout=HOUR)] * 6)
    claims = store.claim(ClaimRequest(W, ("plain",)))
    for names, n in ((("plain",), 1), (("plain",), 2), (("plain", "flat"), 2), (("plain",), 1)):
        commits = [Commit(claim.fence, done) for claim in claims]
        ended, claims = store.commit_and_claim(commits, ClaimRequest(W, names, n=n))
        assert all(isinstance(each, Ended) for each in ended)
    assert claims == []
    assert all(store.take(W, task.id) is None for task in tasks)


@pytest.mark.parametrize("analyze", [False, True])
def test_no_transaction_reads_everything(url: str, analyze: bool) -> None:
    plans = Plans()
    with (
        psycopg.connect(url, autocommit=True) as admin,
        PostgresStore.connect(url, max_size=1) as store,
        PostgresStore(Database(url, max_size=1, prepare=plans.watch)) as watched,
    ):
        row = admin.execute("select rolsuper from pg_roles where rolname = current_user").fetchone()
        if row != (True,):
            pytest.skip("looking at plans needs a superuser")
        store.register(WorkerSpec(W, "w", lease=HOUR))
        for n in range(4):
            everything(store, f"before{n}")
        if analyze:
            admin.execute("analyze")
        everything(watched, "watched")
        everything(watched, "again")
    assert len(plans.seen) > 100
    assert plans.whole_scans() == []
