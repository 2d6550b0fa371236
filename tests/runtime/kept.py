"""What tests of the stores need: a store on a clock that they move, and rows to put in it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

import psycopg
from psycopg import Connection

from afl.kernel.model import (
    CallSpec,
    Claim,
    ClaimRequest,
    Commit,
    Committed,
    Json,
    Suspend,
    TaskSpec,
    Wake,
    WorkerId,
    WorkerSpec,
)
from afl.kernel.mongo import database as mongo_database
from afl.kernel.mongo import store as mongo_kernel
from afl.kernel.port import Transaction
from afl.kernel.postgres.database import Database, Row
from afl.kernel.postgres.store import PostgresStore
from afl.runtime.entities import Run
from afl.runtime.memory_store import MemoryStore
from afl.runtime.mongo_store import MongoStore
from afl.runtime.persistence import IterationChanges, PersistenceAPI
from afl.runtime.postgres.migrate import migrate
from afl.runtime.postgres_store import PostgresPersistence
from afl.runtime.states import ObjectType
from afl.runtime.step import StepDefinition, WorkflowId
from afl.testing.clock import SequentialIds, VirtualClock
from tests.kernel.postgres.databases import clear, set_clock

HOUR = timedelta(hours=1)
WORKER = WorkerId("w")
_TABLES = (
    "program_source program deployment deployment_version run step step_tally step_wait step_log "
    "signal signal_wait memo rate rate_slot schedule schedule_firing"
)


class Kept(Protocol):
    @property
    def store(self) -> PersistenceAPI: ...
    def advance(self, by: timedelta) -> None: ...


class MemoryKept:
    def __init__(self) -> None:
        self._clock = VirtualClock(tick=timedelta(microseconds=1))
        self.store: PersistenceAPI = MemoryStore(self._clock, SequentialIds())

    def advance(self, by: timedelta) -> None:
        self._clock.advance(by)


class PostgresKept:
    """The database is told the virtual time before each transaction."""

    def __init__(self, url: str) -> None:
        self._clock = VirtualClock(tick=timedelta(microseconds=1))
        self.url = url
        self.database = Database(url, max_size=4, prepare=self._set_clock)
        self.store: PersistenceAPI = PostgresPersistence(
            PostgresStore(self.database, SequentialIds()), clock_age_seconds=0
        )

    def advance(self, by: timedelta) -> None:
        self._clock.advance(by)

    def close(self) -> None:
        self.store.close()

    def _set_clock(self, connection: Connection[Row]) -> None:
        set_clock(connection, self._clock.now())


class MongoKept:
    """The database is told the virtual time by the store."""

    def __init__(self, url: str) -> None:
        self._clock = VirtualClock(tick=timedelta(microseconds=1))
        self.url = url
        self.database = mongo_database.Database(url, clock=self._clock.now)
        self.store: PersistenceAPI = MongoStore(
            mongo_kernel.MongoStore(self.database, SequentialIds()), clock_age_seconds=0
        )

    def advance(self, by: timedelta) -> None:
        self._clock.advance(by)

    def close(self) -> None:
        self.store.close()


def connect(url: str) -> PostgresPersistence | MongoStore:
    """The store at a URL, on the real clock."""
    store = MongoStore if url.startswith("mongodb") else PostgresPersistence
    return store.connect(url)


def whole_schema(url: str) -> None:
    migrate(url)


def clear_runs(url: str) -> None:
    """Removes every row."""
    clear(url)
    with psycopg.connect(url) as connection:
        for table in _TABLES.split():
            connection.execute(f"delete from afl.{table}".encode())


def write(kept: Kept, work: Callable[[Transaction], None]) -> None:
    """A transaction with nothing but these writes."""
    kept.store.kernel.commit((), writes=work)


def flow(kept: Kept) -> WorkflowId:
    """A flow task; its id."""
    (task,) = kept.store.kernel.enqueue([TaskSpec("flow", "afl.flow", wake=Wake.ANY)])
    return WorkflowId(task.id)


def begin(kept: Kept, **fields: object) -> WorkflowId:
    """A flow task with its run."""
    id_ = flow(kept)
    run = Run(**{"id": id_, "program": "p", "workflow": "w", "inputs": {}, **fields})  # type: ignore[arg-type]
    write(kept, lambda transaction: kept.store.write_run(transaction, run))
    return id_


def end(kept: Kept, run: WorkflowId, state: str = "completed") -> None:
    write(kept, lambda transaction: kept.store.finish_run(transaction, run, state, {}, None))


def step(run: WorkflowId, path: str, **fields: object) -> StepDefinition:
    given = {"object_type": ObjectType.VARIABLE_ASSIGNMENT, "statement_id": "s", **fields}
    return StepDefinition(run, path, **given)  # type: ignore[arg-type]


def changes(*steps: StepDefinition) -> IterationChanges:
    """Changes that make these steps."""
    made = IterationChanges()
    for each in steps:
        made.add_created_step(each)
    return made


def save(kept: Kept, *steps: StepDefinition) -> None:
    """Puts steps of one run in place."""
    run = steps[0].workflow_id
    write(kept, lambda transaction: kept.store.write_changes(transaction, run, changes(*steps)))


def claim(kept: Kept) -> Claim:
    """The first flow that can be claimed, in the hands of a worker."""
    kernel = kept.store.kernel
    kernel.register(WorkerSpec(WORKER, "w", handlers=("flow", "Pay"), lease=HOUR * 24))
    (held,) = kernel.claim(ClaimRequest(WORKER, ("flow",)))
    return held


def call(kept: Kept, key: str, name: str = "ns.Pay", **params: Json) -> Committed:
    """A flow that waits for the call of a facet under that key."""
    held = claim(kept)
    given: Json = {"run": held.task.id, "step": key, "params": params}
    spec = CallSpec(key, TaskSpec("facet", name, input=given), HOUR)
    (committed,) = kept.store.kernel.commit([Commit(held.fence, Suspend(), calls=(spec,))])
    return committed
