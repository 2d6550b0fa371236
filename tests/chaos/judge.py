"""The verdict: what was promised, against what the sink, the workers and the database say."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import Connection

from afl.kernel.model import Outcome, State, TaskId
from afl.testing.conformance.invariants import Snapshot, Watch
from tests.chaos.clients import Clients
from tests.chaos.evidence import (
    Audit,
    WorkerLogs,
    read_audit,
    read_logs,
    read_snapshot,
)
from tests.chaos.fleet import Faults
from tests.chaos.sink import read_records
from tests.chaos.workload import TASKS_PER_ROOT, leaf_keys

FULL_ROOTS = 2000
#: for as many roots as `FULL_ROOTS`; a smaller run has to show proportionally less
MIN_STALE_REFUSED = 50
MIN_RECOVERED = 100


@dataclass(frozen=True, slots=True)
class Verdict:
    roots: int
    tasks: int
    lost: int
    duplicate_closed: int
    stale_accepted: int
    acknowledged_lost: int
    stale_refused: int
    recovered: int
    kills: int
    stops: int
    restarts: int
    effects: int
    attempts: int
    told_and_sent: int
    strays: int
    looks: int
    deadlocks: int
    seconds: float
    problems: tuple[str, ...]

    @property
    def doubts(self) -> list[str]:
        """Why this run proves nothing, if it does not."""
        share = min(1.0, self.roots / FULL_ROOTS)
        least = {
            "stale_refused": max(1, int(MIN_STALE_REFUSED * share)),
            "recovered": max(1, int(MIN_RECOVERED * share)),
            "strays": 1,
            "kills": 1,
            "stops": 1,
            "restarts": 1,
            "looks": 1,
        }
        seen = {name: getattr(self, name) for name in least}
        return [
            f"{name} is {seen[name]}, less than {n}" for name, n in least.items() if seen[name] < n
        ]

    @property
    def ok(self) -> bool:
        broken = self.lost + self.acknowledged_lost + self.duplicate_closed + self.stale_accepted
        return not (broken or self.problems or self.doubts)


class Invariants:
    """Looks at all rows again and again, while the faults go on and afterwards."""

    def __init__(self, connection: Connection[Any], watch: Watch) -> None:
        self._connection = connection
        self._watch = watch

    def look(self) -> tuple[Snapshot, list[str]]:
        rows = read_snapshot(self._connection)
        return rows, self._watch.check_snapshot(rows)


@dataclass(frozen=True, slots=True)
class Case:
    """All that there is to be judged."""

    url: str
    roots: int
    folder: Path
    sink_file: Path
    clients: Clients
    faults: Faults
    looks: int
    deadlocks: int
    #: what was seen to be wrong on the way
    seen: tuple[str, ...]
    #: when it all began, on the monotonic clock
    started: float


def judge(case: Case, watch: Watch) -> Verdict:
    with psycopg.connect(case.url, autocommit=True) as connection:
        rows, wrong = Invariants(connection, watch).look()
        audit = read_audit(connection)
        done = Counter(
            int(root) for (root,) in connection.execute("select root from chaos.done").fetchall()
        )
    logs = read_logs(case.folder)
    records = list(read_records(case.sink_file))
    values = {record.key: record.value for record in records if record.effect}
    problems = [*case.seen, *wrong, *audit.problems, *case.clients.errors]
    lost = _lost(case, rows, values, done, problems)
    events = Counter(entry.task for entry in rows.outbox if entry.topic == "closed")
    return Verdict(
        roots=len(case.clients.submitted),
        tasks=len(rows.tasks),
        lost=lost,
        duplicate_closed=_extra(events) + _extra(case.clients.closed_events) + _extra(done),
        stale_accepted=_stale_accepted(audit, logs, problems),
        acknowledged_lost=len(logs.acknowledged - audit.accepted),
        stale_refused=len(logs.refused - audit.accepted),
        recovered=len(audit.recovered & _successes(rows)),
        kills=case.faults.kills,
        stops=case.faults.stops,
        restarts=case.faults.restarts,
        effects=len(values),
        attempts=len(records),
        told_and_sent=len(logs.sent_when_told),
        strays=logs.strays,
        looks=case.looks,
        deadlocks=case.deadlocks,
        seconds=round(time.monotonic() - case.started, 1),
        problems=tuple(problems),
    )


def _extra(counts: Counter[Any]) -> int:
    return sum(count - 1 for count in counts.values())


def _successes(rows: Snapshot) -> set[TaskId]:
    return {task.id for task in rows.tasks.values() if task.outcome is Outcome.SUCCESS}


def _lost(
    case: Case,
    rows: Snapshot,
    values: dict[str, int],
    done: Counter[int],
    problems: list[str],
) -> int:
    """Roots that did not come to what their effects come to, once, and were seen to."""
    lost = 0
    for number in range(case.roots):
        task = rows.tasks.get(case.clients.submitted.get(number, TaskId("")))
        keys = leaf_keys(number)
        flaw = None
        if task is None:
            flaw = "is not there"
        elif task.state is not State.CLOSED or task.outcome is not Outcome.SUCCESS:
            flaw = f"is {task.state.value}, {task.outcome}: {task.reason} {task.error}"
        elif missing := [key for key in keys if key not in values]:
            flaw = f"closed without the effects {missing}"
        elif task.result != sum(values[key] for key in keys):
            flaw = f"came to {task.result}, its effects to {sum(values[key] for key in keys)}"
        elif not done[number]:
            flaw = "closed without the write that belongs to its commit"
        elif not case.clients.closed_events[task.id]:
            flaw = "closed, and the reader of the outbox never saw it"
        if flaw is not None:
            lost += 1
            problems.append(f"root {number} {flaw}")
    others = len(rows.tasks) - case.roots * TASKS_PER_ROOT
    if not lost and others:
        problems.append(f"there are {others} tasks more than the work has")
    open_tasks = [task.id for task in rows.tasks.values() if task.state is not State.CLOSED]
    if not lost and open_tasks:
        problems.append(f"{len(open_tasks)} tasks are open although all roots are closed")
    return lost


def _stale_accepted(audit: Audit, logs: WorkerLogs, problems: list[str]) -> int:
    told = logs.sent_when_told & audit.accepted
    problems += [f"commit {each} was taken although its worker was told before" for each in told]
    problems += audit.unfenced
    problems += [
        f"commit {each} was acknowledged and is not there"
        for each in sorted(logs.acknowledged - audit.accepted)
    ]
    problems += [
        f"commit {each} is there and nobody sent it" for each in sorted(audit.accepted - logs.sent)
    ]
    problems += [
        f"fence {fence} was given to {workers}"
        for fence, workers in logs.claims.items()
        if len(set(workers)) > 1
    ]
    return len(told) + len(audit.unfenced)
