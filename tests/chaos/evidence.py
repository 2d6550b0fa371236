"""What the judge looks at: the workers' logs, the audit that a trigger wrote, and all rows at one
moment. None of it goes through the code that is judged."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg import Connection

from afl.kernel.model import OutboxEntry, TaskId
from afl.kernel.postgres.rows import CALL_COLUMNS, TASK_COLUMNS, call_of, task_of
from afl.testing.conformance.invariants import Snapshot

#: A commit, by the fence that it presents and its number under it.
Presented = tuple[int, int]

# Rows of one task are written one after the other, so the audit has their true order.
AUDIT = b"""
create schema chaos;
create table chaos.done (root text not null, fence bigint not null);
create table chaos.audit (
    seq bigint generated always as identity primary key,
    task uuid not null, held bigint, fence bigint, committed bigint, commits int,
    is_commit boolean not null, is_crash boolean not null, is_late boolean not null
);
-- what the outbox has said; whoever reads it may also remove it
create table chaos.closed (task uuid not null);
create function chaos.note_closed() returns trigger language plpgsql as $$
begin
    insert into chaos.closed (task) values (new.task);
    return null;
end $$;
create trigger chaos_closed after insert on afl.outbox for each row
    when (new.topic = 'closed') execute function chaos.note_closed();
create function chaos.note() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        insert into chaos.audit (task, fence, commits, is_commit, is_crash, is_late)
        values (new.id, new.fence, 0, false, false, false);
    else
        insert into chaos.audit
            (task, held, fence, committed, commits, is_commit, is_crash, is_late)
        values (new.id, old.fence, new.fence, new.committed_fence, new.commits,
                (old.committed_fence, old.commits) is distinct from
                (new.committed_fence, new.commits),
                new.crashes > old.crashes, old.state = 'closed');
    end if;
    return null;
end $$;
create trigger chaos_insert after insert on afl.task for each row
    when (new.fence is not null) execute function chaos.note();
create trigger chaos_update after update on afl.task for each row
    when (old.fence is distinct from new.fence or old.commits <> new.commits
          or old.committed_fence is distinct from new.committed_fence
          or new.crashes > old.crashes or old.state = 'closed')
    execute function chaos.note();
"""


def install_audit(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(AUDIT)


def read_closed(url: str) -> Counter[TaskId]:
    """How often each task was announced as closed."""
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute("select task::text from chaos.closed").fetchall()
    return Counter(TaskId(task) for (task,) in rows)


@dataclass(slots=True)
class Audit:
    """What became of fences, as the database saw it."""

    accepted: set[Presented] = field(default_factory=set)
    #: commits that were taken although another fence was held, or none
    unfenced: list[str] = field(default_factory=list)
    recovered: set[TaskId] = field(default_factory=set)
    recoveries: int = 0
    problems: list[str] = field(default_factory=list)


#: A change of a task: its id, the fence before and after, the fence and the count of the last
#: commit, and whether this was a commit, a crash, or a change after the end.
Note = tuple[TaskId, int | None, int | None, int | None, int, bool, bool, bool]


def read_audit(connection: Connection[Any]) -> Audit:
    rows = connection.execute(
        "select task::text, held, fence, committed, commits, is_commit, is_crash, is_late"
        " from chaos.audit order by seq"
    )
    return audit_of(tuple(row) for row in rows)


def audit_of(notes: Iterable[Note]) -> Audit:
    """What the changes of tasks come to, in their order."""
    audit = Audit()
    greatest: dict[TaskId, int] = {}
    for task, held, fence, committed, commits, is_commit, is_crash, is_late in notes:
        if fence is not None and fence != held:
            if fence <= greatest.get(task, 0):
                audit.problems.append(f"I9: task {task} got fence {fence} after {greatest[task]}")
            greatest[task] = fence
        if is_commit:
            if committed != held or held != greatest.get(task):
                audit.unfenced.append(f"task {task}: {committed} committed while {held} was held")
            assert committed is not None
            if (committed, commits - 1) in audit.accepted:
                audit.problems.append(f"commit {commits - 1} under {committed} was taken twice")
            audit.accepted.add((committed, commits - 1))
        if is_crash:
            audit.recovered.add(task)
            audit.recoveries += 1
        if is_late:
            audit.problems.append(f"I10: task {task} was written after it was closed")
    return audit


@dataclass(slots=True)
class WorkerLogs:
    """What all workers said they did."""

    acknowledged: set[Presented] = field(default_factory=set)
    sent: set[Presented] = field(default_factory=set)
    refused: set[Presented] = field(default_factory=set)
    #: commits that were first sent after the worker had been told that the fence is lost
    sent_when_told: set[Presented] = field(default_factory=set)
    claims: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    told: int = 0
    #: tasks that workers had without knowing, and gave back
    strays: int = 0


def read_logs(folder: Path) -> WorkerLogs:
    logs = WorkerLogs()
    for path in sorted(folder.glob("*.jsonl")):
        told: set[int] = set()
        for event, *more in _lines(path):
            if event == "claim":
                logs.claims[more[1]].append(path.stem)
            elif event == "told":
                told.add(more[0])
            elif event == "stray":
                logs.strays += 1
            elif event in ("send", "ok", "fenced"):
                presented = (more[0], more[1])
                if event == "send":
                    if presented not in logs.sent and more[0] in told:
                        logs.sent_when_told.add(presented)
                    logs.sent.add(presented)
                else:
                    (logs.acknowledged if event == "ok" else logs.refused).add(presented)
        logs.told += len(told)
    return logs


def _lines(path: Path) -> Iterator[list[Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def read_snapshot(connection: Connection[Any]) -> Snapshot:
    """All rows at one moment, while everything goes on."""
    with connection.transaction():
        connection.execute("set transaction isolation level repeatable read, read only")
        tasks = connection.execute(f"select {TASK_COLUMNS} from afl.task t".encode()).fetchall()
        calls = connection.execute(f"select {CALL_COLUMNS} from afl.call c".encode()).fetchall()
        outbox = connection.execute(
            "select entry, topic, task::text, run, body, created_at from afl.outbox"
        ).fetchall()
        # a gap in a box makes its end and the count differ, and then the length is wrong
        boxes = connection.execute(
            "select box, case when max(seq + length(cards) / 32) = sum(length(cards) / 32)"
            " then sum(length(cards) / 32)::int else -1 end from afl.box_card group by box"
        ).fetchall()
    return Snapshot(
        tasks={task.id: task for task in map(task_of, tasks)},
        calls={call.id: call for call in map(call_of, calls)},
        outbox=tuple(OutboxEntry(*row) for row in outbox),
        box_lengths={TaskId(box): length for box, length in boxes},
    )
